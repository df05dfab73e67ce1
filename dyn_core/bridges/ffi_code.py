"""A handler for XLA's foreign function interface: compiled, never run as Python.

The language is the Python subset of python_to_llvm.py. XLA calls `handler` with a call
frame that names the memory of inputs and results; it runs the kernels of one Program,
whose addresses and sizes are constants (ffi_handler.py). Rows whose status is not 0
(engines/status.py) are filled with NaN. No memory persists between calls, so that
threads may call it at once; kernels ask for scratch memory that is initially zero
(product_arrays.py). All names of memory are addresses. Constants: N_IN and N_OUT, the
numbers of inputs and outputs; IN_AXES, IN_BYTES, OUT_AXES and OUT_BYTES, addresses of
the number of axes and of bytes of one state of each (int64); SCALAR and BATCH,
addresses of the kernels; SCALAR_SCRATCH and BATCH_SCRATCH, bytes of their scratch
memory; SCALAR_LARGE and BATCH_LARGE, 1 if it is too large for the stack; WIDTH, the
least number of rows of the batch kernel; CHECKED, 1 if that kernel writes statuses;
FINITE, 1 if NaN and infinity count as failures, else 0; ITEM, bytes of a number; NAN,
address of one that is NaN; REAL, XLA's number of its dtype; VERSION; and the messages
BAD_FRAME, BAD_COUNT, BAD_DTYPE and NO_MEMORY.

Source: the C interface, xla/ffi/api/c_api.h in the headers of jaxlib: its structures
only grow at their ends within major version 0.
"""

from dyn_core.engines.llvm.call.entry_code import is_finite
from dyn_core.engines.llvm.call.python_to_llvm import (
    call,
    copy,
    load,
    load32,
    room,
    store,
)
from dyn_core.engines.status import NOT_FINITE_INPUT, NOT_FINITE_RESULT

# XLA_FFI_CallFrame, XLA_FFI_Buffer, XLA_FFI_Api; sizes of XLA_FFI_Error_Create_Args.
EXTENSION, API, STAGE, FRAME_SIZE = 8, 16, 32, 168
N_ARGS, ARGS, N_RETS, RETS = 56, 72, 96, 112
DTYPE, DATA, AXES, LENGTHS = 16, 24, 32, 40
EXECUTE, ERROR_CREATE, ERROR_SIZE, INTERNAL = 3, 48, 28, 13
# XLA_FFI_Metadata_Extension and XLA_FFI_Metadata.
KIND, METADATA_KIND, METADATA, VERSION_PLACE, TRAITS, STATE_TYPE = 8, 1, 24, 24, 32, 40
CHUNK = 256  # rows whose status is buffered at a time


def failure(frame, message):
    """Return the address of a new error object of XLA: code INTERNAL, and a message.

    Args:
        frame: Address of the call frame.
        message: Address of zero-terminated text.
    """
    memory = room(32)
    store(memory, ERROR_SIZE)
    store(memory + 8, 0)
    store(memory + 16, message)
    store(memory + 24, INTERNAL)
    return call(load(load(frame + API) + ERROR_CREATE), memory)


def describe(metadata):
    """Write the version of the interface that jaxlib's headers state; return 0.

    Traits, and the state type if the structure has one, are set to zero.

    Args:
        metadata: Address of XLA's structure XLA_FFI_Metadata.
    """
    store(metadata + VERSION_PLACE, VERSION)
    zero = room(8)
    store(zero, 0)
    copy(metadata + TRAITS, zero, 4)
    if load(metadata) > STATE_TYPE:
        store(metadata + STATE_TYPE, 0)
    return 0


def checked(inputs, strides, outputs, row, state):
    """Return the status of a row after a check for NaN and infinity.

    It is NOT_FINITE_INPUT if an input is not finite, else `state` if that is not 0,
    else NOT_FINITE_RESULT if a result is not finite, else 0.

    Args:
        state: Status of the kernel.
        inputs, outputs: Addresses of the tables with the addresses of arrays.
        strides: Address of the bytes from row to row of each input, 0 if shared.
        row: Index of the row.
    """
    k = 0
    while k < N_IN:
        data = load(inputs + 8 * k) + load(strides + 8 * k) * row
        if is_finite(data, data + load(IN_BYTES + 8 * k)) == 0:
            return NOT_FINITE_INPUT
        k += 1
    k = 0
    while k < N_OUT and state == 0:
        size = load(OUT_BYTES + 8 * k)
        data = load(outputs + 8 * k) + size * row
        if is_finite(data, data + size) == 0:
            return NOT_FINITE_RESULT
        k += 1
    return state


def note(inputs, strides, outputs, row, state, states):
    """Write the status of a row to `states`; fill the outputs of a failed row with NaN.

    With FINITE, a row whose inputs or results have NaN or infinity fails, too. `state`
    is the status of the kernel; other arguments as in `run`. Returns 0.
    """
    if FINITE:
        state = checked(inputs, strides, outputs, row, state)
    number = room(8)
    store(number, state)
    if states != 0:
        copy(states + 4 * row, number, 4)
    if state == 0:
        return 0
    k = 0
    while k < N_OUT:
        size = load(OUT_BYTES + 8 * k)
        place = load(outputs + 8 * k) + size * row
        end = place + size
        while place < end:
            copy(place, NAN, ITEM)
            place += ITEM
        k += 1
    return 0


def run_row(inputs, strides, outputs, row, states, scratch):
    """Run the scalar kernel on one row; return 0. Status and NaN are as in `note`.

    `scratch` is a multiple of 64; the memory must be zero before the first row.
    """
    sources, targets, k = room(8 * N_IN + 8), room(8 * N_OUT + 8), 0
    while k < N_IN:
        store(sources + 8 * k, load(inputs + 8 * k) + load(strides + 8 * k) * row)
        k += 1
    k = 0
    while k < N_OUT:
        store(targets + 8 * k, load(outputs + 8 * k) + load(OUT_BYTES + 8 * k) * row)
        k += 1
    state = call(SCALAR, sources, targets, scratch)
    return note(inputs, strides, outputs, row, state, states)


def run_chunks(inputs, strides, outputs, rows, states, scratch):
    """Run at least WIDTH rows with the batch kernel, CHUNK at a time; return 0.

    Fewer than WIDTH rows that are left at the end join the last chunk. `scratch`,
    zeroed memory, is a multiple of 64; other arguments as in `run`.
    """
    status, first = room(8 * (CHUNK + WIDTH)), 0
    while first < rows:
        last = first + CHUNK
        if rows - last < WIDTH:
            last = rows
        before = status - 8 * first
        bad = call(BATCH, inputs, strides, outputs, before, first, last, scratch)
        if bad != 0 or states != 0 or FINITE:
            row = first
            while row < last:
                state = 0
                if CHECKED:
                    state = load(before + 8 * row)
                note(inputs, strides, outputs, row, state, states)
                row += 1
        first = last
    return 0


def run_rows(inputs, strides, outputs, rows, states):
    """Run a batch of at least WIDTH rows with zeroed scratch memory; see `run`."""
    if BATCH_LARGE:
        memory = calloc(1, BATCH_SCRATCH + 64)
        if memory == 0:
            return NO_MEMORY
        scratch = memory + ((0 - memory) & 63)
        run_chunks(inputs, strides, outputs, rows, states, scratch)
        free(memory)
        return 0
    memory = room(BATCH_SCRATCH * (1 - BATCH_LARGE) + 64)
    memory += (0 - memory) & 63
    memset(memory, 0, BATCH_SCRATCH)
    return run_chunks(inputs, strides, outputs, rows, states, memory)


def run_few(inputs, strides, outputs, rows, states, scratch):
    """Run one state (rows < 0) or rows one by one, as run_row; return 0."""
    if rows < 0:
        state = call(SCALAR, inputs, outputs, scratch)
        return note(inputs, strides, outputs, 0, state, states)
    row = 0
    while row < rows:
        run_row(inputs, strides, outputs, row, states, scratch)
        row += 1
    return 0


def run(inputs, strides, outputs, rows, states):
    """Run one state (rows < 0) or rows; return 0, or the message NO_MEMORY.

    The batch kernel runs WIDTH rows or more, the scalar kernel fewer. Statuses are
    written, and failed rows are filled with NaN.

    Args:
        inputs, outputs: Addresses of the tables with the addresses of arrays.
        strides: Address of the bytes from row to row of each input, 0 if shared.
        rows: Number of rows, -1 for one state.
        states: Address of the statuses of all rows (int32); 0: none is written.
    """
    if rows >= WIDTH:
        return run_rows(inputs, strides, outputs, rows, states)
    if SCALAR_LARGE:
        memory = calloc(1, SCALAR_SCRATCH + 64)
        if memory == 0:
            return NO_MEMORY
        scratch = memory + ((0 - memory) & 63)
        run_few(inputs, strides, outputs, rows, states, scratch)
        free(memory)
        return 0
    memory = room(SCALAR_SCRATCH * (1 - SCALAR_LARGE) + 64)
    memory += (0 - memory) & 63
    memset(memory, 0, SCALAR_SCRATCH)
    return run_few(inputs, strides, outputs, rows, states, memory)


def unfit(frame):
    """Return the address of a message if `execute` cannot take a frame, else 0."""
    if load(frame) < FRAME_SIZE or load32(frame + STAGE) != EXECUTE:
        return BAD_FRAME
    if load(frame + N_ARGS) != N_IN or load(frame + N_RETS) < N_OUT:
        return BAD_COUNT
    k = 0
    while k < N_IN:
        if load32(load(load(frame + ARGS) + 8 * k) + DTYPE) != REAL:
            return BAD_DTYPE
        k += 1
    return 0


def execute(frame):
    """Run the kernels on the buffers of a frame that `unfit` accepts; return as `run`.

    Outputs with a further, first axis hold that many rows, other outputs one state;
    inputs without it are shared. Statuses are written if the frame has one more result.
    """
    inputs, strides = room(8 * N_IN + 8), room(8 * N_IN + 8)
    outputs, rows, states, k = room(8 * N_OUT + 8), -1, 0, 0
    while k < N_IN:
        buffer = load(load(frame + ARGS) + 8 * k)
        store(inputs + 8 * k, load(buffer + DATA))
        store(strides + 8 * k, 0)
        if load(buffer + AXES) > load(IN_AXES + 8 * k):
            store(strides + 8 * k, load(IN_BYTES + 8 * k))
        k += 1
    k = 0
    while k < N_OUT:
        buffer = load(load(frame + RETS) + 8 * k)
        store(outputs + 8 * k, load(buffer + DATA))
        if load(buffer + AXES) > load(OUT_AXES + 8 * k):
            rows = load(load(buffer + LENGTHS))
        k += 1
    if load(frame + N_RETS) > N_OUT:
        states = load(load(load(frame + RETS) + 8 * N_OUT) + DATA)
    return run(inputs, strides, outputs, rows, states)


def handler(frame):
    """Answer a call of XLA; return 0 or the address of an error object."""
    extension = load(frame + EXTENSION)
    if extension != 0:
        if load32(extension + KIND) == METADATA_KIND:
            return describe(load(extension + METADATA))
    message = unfit(frame)
    if message == 0:
        message = execute(frame)
    if message != 0:
        return failure(frame, message)
    return 0
