"""Draw demo.png in this folder: the picture of `aniso demo`, small enough for a README."""

from pathlib import Path

from PIL import Image

from aniso.cli.jobs import demonstration

sheet = demonstration.sheet([make() for make in demonstration.BLOCKS])
small = sheet.resize((round(0.75 * sheet.width), round(0.75 * sheet.height)), Image.Resampling.LANCZOS)
colours = small.quantize(256, kmeans=2)
few = small.quantize(palette=colours, dither=Image.Dither.FLOYDSTEINBERG)
palette, paper = few.getpalette(), few.getpixel((0, 0))
palette[3 * paper : 3 * paper + 3] = 255, 255, 255  # in the palette, a mean of bright colours
few.putpalette(palette)
few.save(Path(__file__).with_name("demo.png"), optimize=True)
