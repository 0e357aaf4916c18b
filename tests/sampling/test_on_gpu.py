"""Clusters on a CUDA device: balanced, and as good as on the CPU."""

from __future__ import annotations

import time

import numpy as np
import pytest
import torch
from sampling.cases import mean_cosine, planted

from primexmc.sampling import balanced_clusters

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")]


@pytest.mark.parametrize("num_clusters", [1, 37, 512, 2048])
def test_as_good_as_on_the_cpu(num_clusters):
    points, _ = planted(0, 128, 16, noise=0.15)
    quality = []
    for device in ("cpu", "cuda"):
        cluster = balanced_clusters(points.to(device), num_clusters, seed=0)
        sizes = torch.bincount(cluster, minlength=num_clusters)
        assert cluster.device.type == device and len(sizes) == num_clusters
        assert sizes.max() - sizes.min() <= 1
        quality.append(mean_cosine(points, cluster.cpu()))
    assert quality[1] == pytest.approx(quality[0], abs=0.01)


def test_two_million_points():
    """The size of LF-AmazonTitles-1.3M: minutes would make every refresh a pause."""
    generator = torch.Generator("cuda").manual_seed(0)
    points = torch.randn(2_200_000, 768, device="cuda", generator=generator)
    points /= points.norm(dim=1, keepdim=True)
    torch.cuda.synchronize()
    started = time.perf_counter()
    cluster = balanced_clusters(points, 550_000, seed=0)
    torch.cuda.synchronize()
    seconds = time.perf_counter() - started
    print(f"2.2M x 768 into 550,000 clusters: {seconds:.1f} s")
    assert np.array_equal(np.unique(torch.bincount(cluster).cpu().numpy()), [4])
    assert seconds < 60
