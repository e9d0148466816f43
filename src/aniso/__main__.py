"""`python -m aniso`."""

from aniso.cli import main

main()
