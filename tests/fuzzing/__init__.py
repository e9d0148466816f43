"""Calls with odd arguments, by the thousand: each is answered, or refused in a sentence.

`python -m tests.fuzzing --cases 10000 --seed 0` tells how many of each kind. A failure is named by a text
from which the same call can be made again: `python -m tests.fuzzing --again 0/diffuse/17`.
"""
