"""LLVM for NVIDIA GPUs: architectures, optimisation of a module, its PTX."""

from __future__ import annotations

from typing import Any

from dyn_core.engines.llvm import compiler
from dyn_core.errors import CompileError, UnsupportedError

TRIPLE = "nvptx64-nvidia-cuda"
# First PTX version of each architecture. Later GPUs run PTX of earlier
# ones: the driver translates it.
ARCHITECTURES = {
    "sm_75": "ptx63",
    "sm_80": "ptx70",
    "sm_86": "ptx71",
    "sm_89": "ptx78",
    "sm_90": "ptx78",
    "sm_100": "ptx86",
    "sm_120": "ptx87",
}


def target(arch: str) -> Any:
    """Return a new code generator of LLVM (TargetMachine) for an architecture.

    Raises:
        UnsupportedError: It is not one of ARCHITECTURES (sm_75 to sm_120), or this
            llvmlite has no code generator for GPUs.
    """
    import llvmlite.binding as llvm

    if arch not in ARCHITECTURES:
        valid = ", ".join(ARCHITECTURES)
        raise UnsupportedError(f"no GPU architecture '{arch}'; valid: {valid}")
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    try:
        found_target = llvm.Target.from_triple(TRIPLE)
    except RuntimeError as error:
        message = f"this llvmlite has no code generator for GPUs ({error})"
        raise UnsupportedError(message) from error
    return found_target.create_target_machine(
        cpu=arch, features=f"+{ARCHITECTURES[arch]}", opt=3, codemodel="default"
    )


def optimised(ir: str, arch: str) -> str:
    """Return LLVM IR after inlining and passes that turn memory into registers."""
    import llvmlite.binding as llvm

    machine = target(arch)
    with compiler._lock:
        module = _parsed(ir)
        module.triple, module.data_layout = TRIPLE, str(machine.target_data)
        options = llvm.create_pipeline_tuning_options(speed_level=2)
        builder = llvm.create_pass_builder(machine, options)
        passes = llvm.create_new_module_pass_manager()
        passes.add_always_inliner_pass()
        passes.add_global_dead_code_eliminate_pass()
        passes.add_sroa_pass()
        passes.add_simplify_cfg_pass()
        passes.add_new_gvn_pass()
        passes.add_dead_store_elimination_pass()
        passes.add_aggressive_dce_pass()
        passes.run(module, builder)
        return str(module)


def emit(ir: str, arch: str) -> str:
    """Return the PTX of a module that `optimised` returned."""
    machine = target(arch)
    with compiler._lock:
        return str(machine.emit_assembly(_parsed(ir)))


def _parsed(ir: str) -> Any:
    """Return LLVM's module of LLVM IR, which is parsed but not verified."""
    import llvmlite.binding as llvm

    try:
        return llvm.parse_assembly(ir)
    except RuntimeError as error:
        raise CompileError(f"LLVM refused a kernel for GPUs: {error}") from error
