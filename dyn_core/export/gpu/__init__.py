"""Programs as kernels for GPUs: one thread computes one state."""

from dyn_core.export.gpu.kernel import GpuKernel, ptx
from dyn_core.export.gpu.target import ARCHITECTURES

__all__ = ["ARCHITECTURES", "GpuKernel", "ptx"]
