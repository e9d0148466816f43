"""
Denoising
=========

``aniso.denoise`` removes noise and preserves edges. The noise level, the contrast of edges and the
diffusion time are estimated from the image.
"""

import matplotlib.pyplot as plt
import numpy as np

import aniso

photograph = aniso.samples.photograph("astronaut")[20:212, 128:320]
noise = np.random.default_rng(0).normal(0, 25, photograph.shape)
noisy = photograph + noise


def psnr(image):
    return 10 * np.log10(255**2 / np.mean((image - photograph) ** 2))


# %%
# ``return_info=True`` also returns the parameters used. The expected error is estimated without the
# ground truth; the true error is printed for comparison.

result, info = aniso.denoise(noisy, channel_axis=-1, return_info=True)
print(info)
print(f"true error: {np.sqrt(np.mean((result - photograph) ** 2)):.2f} grey values")

# %%
# A single diffusion uses the same contrast and time everywhere. By default, several diffusions are
# mixed, with weights that depend on the position; ``mix=False`` returns the best single diffusion.

single = aniso.denoise(noisy, channel_axis=-1, mix=False)
panels = {
    f"noise σ = 25\n{psnr(noisy):.1f} dB": noisy,
    f"best single diffusion\n{psnr(single):.1f} dB": single,
    f"denoise\n{psnr(result):.1f} dB": result,
    "photograph\nwithout noise": photograph,
}
figure, axes = plt.subplots(1, 4, figsize=(10, 3.1), layout="constrained")
for panel, (name, image) in zip(axes, panels.items(), strict=True):
    panel.imshow(np.clip(image, 0, 255) / 255)
    panel.set_title(name, fontsize=13)
    panel.set(xticks=[], yticks=[])
plt.show()

# %%
# The stopping time minimises the estimated error, shown here for one diffusion. If the time is too short,
# noise remains; if it is too long, details are lost. Estimated and true error have the same minimum.

grey, truth = noisy.mean(axis=-1), photograph.mean(axis=-1)
times = [0.25 * 1.55**k for k in range(8)]
estimated, true = [], []
for time in times:
    image, info = aniso.denoise(grey, contrast=7.0, time=time, return_info=True)
    estimated.append(info.expected_error)
    true.append(np.sqrt(np.mean((image - truth) ** 2)))

figure, panel = plt.subplots(figsize=(7, 3.6), layout="constrained")
panel.semilogx(times, true, "k-", label="true error")
panel.semilogx(times, estimated, "o", label="estimated without the photograph")
panel.set(xlabel="time", ylabel="root mean square error")
panel.set_xticks([0.25, 0.5, 1, 2, 4], ["0.25", "0.5", "1", "2", "4"])
panel.minorticks_off()
panel.legend()
plt.show()
