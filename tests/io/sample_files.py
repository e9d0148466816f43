"""The files that the commands in the documentation speak of."""

import numpy as np

import aniso
from aniso import io
from aniso.io.picture import Picture


def make(folder):
    """Write what stands for files of the reader, and the two files that pages make in Python.

    These are camera.png, fingerprint.png, photo.jpg, mask.png, scan.tif, heights.npy and scans/*.tif, and
    noisy.png and lighthouse.png.
    """
    rng = np.random.default_rng(0)

    def worn(image, noise, top=255):
        return np.clip(np.rint(image + rng.normal(0, noise, image.shape)), 0, top)

    camera = aniso.samples.photograph("camera")[::2, ::2].astype(float)
    io.write(folder / "camera.png", worn(camera, 15).astype(np.uint8))
    io.write(folder / "fingerprint.png", worn(aniso.samples.fingerprint(128).image, 0).astype(np.uint8))
    photo = aniso.samples.photograph("astronaut")[:360:2, :480:2].astype(float)
    io.write(folder / "photo.jpg", worn(photo, 8).astype(np.uint8))
    lighthouse = worn(aniso.samples.lighthouse(128, noise=25.0).image, 0).astype(np.uint8)
    for name in ("noisy", "lighthouse"):
        io.write(folder / f"{name}.png", lighthouse)
    mask = np.zeros(photo.shape[:2], np.uint8)
    mask[80:84] = mask[:, 150:153] = 255
    io.write(folder / "mask.png", mask)
    pages = np.stack([camera[k : k + 96, k : k + 128] for k in (0, 40, 80)]) * 257
    io.write(folder / "scan.tif", Picture(worn(pages, 4000, 65535).astype(np.uint16)))
    heights = camera[60:156, 60:156].astype(np.float32)
    heights[30:38, 40:60] = np.nan
    np.save(folder / "heights.npy", heights)
    (folder / "scans").mkdir()
    for number, start in enumerate((0, 100), 1):
        part = camera[start : start + 80, 60:160] * 257
        io.write(folder / "scans" / f"slice{number}.tif", worn(part, 4000, 65535).astype(np.uint16))
