"""Draws demo.png beside this file: the sheet of `aniso demo`, small enough for a README."""

from pathlib import Path

from PIL import Image

from aniso import demo

sheet = demo.sheet([make() for make in demo.BLOCKS])
small = sheet.resize((round(0.75 * sheet.width), round(0.75 * sheet.height)), Image.Resampling.LANCZOS)
colours = small.quantize(256, kmeans=2)
small.quantize(palette=colours, dither=Image.Dither.FLOYDSTEINBERG).save(
    Path(__file__).with_name("demo.png"), optimize=True
)
