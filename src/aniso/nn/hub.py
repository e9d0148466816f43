"""Folders in the format of the Hugging Face Hub, which need the extra `hub`."""

from __future__ import annotations

from importlib.resources import files
from typing import Any, Self

try:
    from huggingface_hub import ModelCard, ModelCardData, PyTorchModelHubMixin
except ImportError as error:
    raise ImportError(
        'aniso.nn.hub needs huggingface_hub and safetensors. Install them with: pip install "aniso[hub]".'
    ) from error

from aniso.nn.kernels import KernelDiffusionNet
from aniso.nn.presets import options_of, pretrained

_CARD = "A denoising diffusion with learned kernels, `aniso.nn.KernelDiffusionNet`.\n"
_USE = """
## Use

```python
from aniso.nn.hub import HubDiffusionNet

net = HubDiffusionNet.from_pretrained("this folder, or its name on the hub")
clean = net(images, 25.0)  # (N, C, H, W), grey values from 0 to 255, and the noise level
```
"""


class HubDiffusionNet(KernelDiffusionNet, PyTorchModelHubMixin):
    """A :class:`KernelDiffusionNet` with folders in the format of the Hugging Face Hub.

    ``net.save_pretrained(folder)`` writes ``config.json`` with the options, ``model.safetensors`` with the
    parameters, and the model card as ``README.md``. ``HubDiffusionNet.from_pretrained(folder)`` reads them,
    and ``net.push_to_hub(name)`` uploads them. Local folders need no network.

    Parameters
    ----------
    dilations, kernels, side, colour, correlated, device, dtype
        As for :class:`KernelDiffusionNet`.

    Examples
    --------
    >>> import tempfile
    >>> from aniso.nn.hub import HubDiffusionNet
    >>> net = HubDiffusionNet.trained("denoise-2-75")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = net.save_pretrained(folder)
    ...     again = HubDiffusionNet.from_pretrained(folder)
    Loading weights from local directory
    >>> sum(p.numel() for p in again.parameters())
    9920
    """

    #: The text of the model card.
    card = _CARD

    @classmethod
    def trained(cls, name: str) -> Self:
        """Return a trained net, as :func:`pretrained` does, with its card."""
        source = pretrained(name)
        if not isinstance(source, KernelDiffusionNet):
            raise ValueError(
                f"{name!r} is a {type(source).__name__}; folders for the hub are for nets of the class "
                "KernelDiffusionNet, such as 'denoise-2-75'."
            )
        net = cls(**options_of(name))
        net.load_state_dict(source.state_dict())
        net.card = (files("aniso.nn") / "trained" / f"{name}.md").read_text("utf-8")
        return net.eval()

    @classmethod
    def _from_pretrained(cls, *, strict: bool = True, **options: Any) -> Self:
        """Load parameters; a file that lacks some of them is an error."""
        net: Self = super()._from_pretrained(strict=strict, **options)
        return net

    def generate_model_card(self, *args: Any, **options: Any) -> ModelCard:
        """Return the card with the metadata of the hub."""
        data = ModelCardData(
            library_name="aniso",
            license="bsd-3-clause",
            pipeline_tag="image-to-image",
            tags=["image-denoising", "anisotropic-diffusion", "pytorch_model_hub_mixin"],
        )
        return ModelCard(f"---\n{data.to_yaml()}\n---\n\n{self.card}{_USE}")
