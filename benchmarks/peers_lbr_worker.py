"""Run ITK's AnisotropicDiffusionLBR for another process; for Python 3.9, whose wheels are the last ones.

    pip install itk-anisotropicdiffusionlbr "itk==5.2.1.post1" "numpy<1.24"

Standard input has a line of JSON and an array in NumPy's format for each call; standard output the result.
Nothing here is newer than Python 3.9, and nothing imports aniso.
"""

import io
import json
import os
import sys

import itk
import numpy as np


def main():
    """Answer calls until standard input ends."""
    # ITK writes to standard output, where results go.
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    itk.CoherenceEnhancingDiffusionImageFilter.GetTypes()  # loads the module, or fails before it is ready
    output.write(b"ready\n")
    output.flush()
    for line in iter(sys.stdin.buffer.readline, b""):
        options = json.loads(line)
        image = np.load(io.BytesIO(sys.stdin.buffer.read(options.pop("bytes"))))
        try:
            answer = io.BytesIO()
            np.save(answer, diffuse(image, **options))
            head, content = {"bytes": answer.tell()}, answer.getvalue()
        except Exception as error:
            head, content = {"error": str(error).strip().splitlines()[-1]}, b""
        output.write(json.dumps(head).encode() + b"\n" + content)
        output.flush()


def diffuse(image, enhancement, time, contrast, feature, threads, spacing):
    """Return the image after a diffusion time; the filter chooses its own stable steps."""
    itk.MultiThreaderBase.SetGlobalDefaultNumberOfThreads(threads)
    given = itk.image_from_array(image)
    if spacing is not None:
        given.SetSpacing(spacing[::-1])
    kind = itk.CoherenceEnhancingDiffusionImageFilter[type(given)]
    run = kind.New(given)
    run.SetEnhancement(getattr(kind, "EnhancementType_" + enhancement))
    run.SetDiffusionTime(time)
    run.SetLambda(contrast)
    run.SetNoiseScale(1.0)
    run.SetFeatureScale(feature)
    run.Update()
    return itk.array_from_image(run.GetOutput())


if __name__ == "__main__":
    main()
