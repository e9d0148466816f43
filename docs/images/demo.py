"""Draws demo.png beside this file: the sheet of `aniso demo`, small enough for a README."""

from pathlib import Path

from PIL import Image

from aniso import demo

sheet = demo.sheet([make() for make in demo.BLOCKS])
small = sheet.resize((round(0.75 * sheet.width), round(0.75 * sheet.height)), Image.Resampling.LANCZOS)
colours = small.quantize(256, kmeans=1)
palette = colours.getpalette() or []
entries = [palette[first : first + 3] for first in range(0, len(palette), 3)]
paper = 3 * max(range(len(entries)), key=lambda entry: sum(entries[entry]))
palette[paper : paper + 3] = [255, 255, 255]  # a mean of bright colours is a little darker
colours.putpalette(palette)
small.quantize(palette=colours, dither=Image.Dither.FLOYDSTEINBERG).save(
    Path(__file__).with_name("demo.png"), optimize=True
)
