"""Programs as kernels for GPUs: one thread computes one state."""

from dyn_core.export.gpu.kernel import GpuKernel, ptx

__all__ = ["GpuKernel", "ptx"]
