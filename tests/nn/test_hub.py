"""Nets as safetensors files and as folders for the Hugging Face Hub, without a network."""

import json
import socket
from typing import Any

import pytest
import torch

import aniso
from aniso.nn import KernelDiffusionNet

safetensors = pytest.importorskip("safetensors.torch")
pytest.importorskip("huggingface_hub")
from aniso.nn.hub import HubDiffusionNet  # noqa: E402

OPTIONS: dict[str, Any] = {
    "dilations": [1, 2], "kernels": 4, "side": 3, "colour": True, "correlated": True,
}  # fmt: skip


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    def reject(*args):
        raise AssertionError("there was a connection")

    monkeypatch.setattr(socket.socket, "connect", reject)


def an_image():
    return 128 + 30 * torch.randn(1, 3, 20, 24, generator=torch.Generator().manual_seed(0))


def test_a_folder_restores_options_and_parameters(tmp_path):
    net = HubDiffusionNet(**OPTIONS)
    net.save_pretrained(tmp_path / "net")
    names = {path.name for path in (tmp_path / "net").iterdir()}
    assert names == {"README.md", "config.json", "model.safetensors"}
    config = json.loads((tmp_path / "net" / "config.json").read_text("utf-8"))
    assert {name: config[name] for name in OPTIONS} == OPTIONS
    again = HubDiffusionNet.from_pretrained(tmp_path / "net")
    assert not again.training
    assert torch.equal(again(an_image(), 20.0, 0.7), net(an_image(), 20.0, 0.7))


def test_the_trained_net_and_its_card(tmp_path):
    HubDiffusionNet.trained("denoise-2-75").save_pretrained(tmp_path)
    again = HubDiffusionNet.from_pretrained(tmp_path)
    with torch.inference_mode():
        assert torch.equal(again(an_image(), 25.0), aniso.nn.pretrained("denoise-2-75")(an_image(), 25.0))
    card = (tmp_path / "README.md").read_text("utf-8")
    assert card.startswith("---\n")
    for words in (
        "library_name: aniso",
        "license: bsd-3-clause",
        "9,920 parameters",
        "Limits:",
        "from_pretrained(",
    ):
        assert words in card
    assert (tmp_path / "model.safetensors").stat().st_size < 60_000


def test_other_nets():
    with pytest.raises(ValueError, match="'denoise-20' is a SteeredDiffusionNet; folders"):
        HubDiffusionNet.trained("denoise-20")
    with pytest.raises(ValueError, match="there is no trained net 'denoise-1'"):
        HubDiffusionNet.trained("denoise-1")


def test_a_file_that_lacks_parameters(tmp_path):
    HubDiffusionNet(**OPTIONS).save_pretrained(tmp_path)
    tensors = safetensors.load_file(tmp_path / "model.safetensors")
    del tensors["stages.0.mixing"]
    safetensors.save_file(tensors, tmp_path / "model.safetensors")
    with pytest.raises(RuntimeError, match=r"stages\.0\.mixing"):
        HubDiffusionNet.from_pretrained(tmp_path)


def test_safetensors_alone(tmp_path):
    net, other = KernelDiffusionNet(**OPTIONS), KernelDiffusionNet(**OPTIONS)
    safetensors.save_model(net, tmp_path / "net.safetensors")
    safetensors.load_model(other, tmp_path / "net.safetensors")
    assert torch.equal(net(an_image(), 20.0), other(an_image(), 20.0))
