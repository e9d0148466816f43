"""The net with larger kernels in ONNX, for any number of images, height and width."""

import pytest
import torch

from aniso.nn import KernelDiffusionNet

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.filterwarnings("ignore:.*isinstance.treespec, LeafSpec.*:FutureWarning")
def test_onnx_gives_the_same_for_any_size(channels, tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    for needed in ("onnx", "onnxscript"):
        pytest.importorskip(needed)
    torch.manual_seed(0)
    net = KernelDiffusionNet([1, 2], kernels=2, side=3, colour=True).eval()
    count, sizes = {0: torch.export.Dim.DYNAMIC}, dict.fromkeys((0, 2, 3), torch.export.Dim.DYNAMIC)
    example = 128 + 20 * torch.randn(2, channels, 20, 24), torch.tensor([20.0, 30.0])
    program = torch.onnx.export(net, example, dynamic_shapes=(sizes, count), dynamo=True, verbose=False)
    assert program is not None
    program.save(tmp_path / "net.onnx")
    session = runtime.InferenceSession(tmp_path / "net.onnx", providers=["CPUExecutionProvider"])
    names = [one.name for one in session.get_inputs()]
    for images, height, width in ((2, 20, 24), (3, 31, 17), (1, 9, 40)):
        image, levels = (
            128 + 20 * torch.randn(images, channels, height, width),
            torch.linspace(10, 50, images),
        )
        given = (image.numpy(), levels.numpy())
        (result,) = session.run(None, dict(zip(names, given, strict=True)))
        with torch.inference_mode():
            torch.testing.assert_close(torch.from_numpy(result), net(image, levels), rtol=0, atol=1e-3)
