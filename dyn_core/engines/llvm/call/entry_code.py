"""Code of each call of a Program: compiled to machine code, never run as Python.

python_to_llvm.py explains the language and the purpose. Every path except for the
common one ends in `leave`: Python then raises the error, or converts and computes.
Addresses of memory and of Python objects are whole numbers.

A word is 8 bytes. The words of a port are its number of axes, its number of entries,
and the lengths of its axes without the batch axis, at most four. The words of a
Descriptor are FIELDS, such as the number of inputs and the address of their ports.
A number is a float of ITEM bytes: 8, or 4 in the code for float32.
"""

from dyn_core.engines.llvm.call.python_to_llvm import (
    call,
    copy,
    load,
    load32,
    real,
    room,
    store,
)  # fmt: skip
from dyn_core.engines.llvm.call.result_memory_code import COLD, LARGE

# Fields of a Descriptor, eight bytes each.
FIELDS = (
    "SCALAR", "BATCH", "SCRATCH", "BATCH_SCRATCH", "N_IN", "N_OUT", "INPUTS", "OUTPUTS",
    "SLOW", "CALL", "ARRAY_TYPE", "FLOAT_TYPE", "NUMBER_TYPE", "DESCR", "TUPLE_TYPE",
    "RESULT_TYPE", "OUT_NAME", "NEW_ARRAY", "MAX_ROWS", "WIDTH", "STATUS", "CAREFUL",
    "FINITE", "TEMPORARY", "HOLD_ROWS", "BUSY", "STREAMED", "MEMORY", "HANDLER",
    "SET_HANDLER",
)  # fmt: skip
(SCALAR, BATCH, SCRATCH, BATCH_SCRATCH, N_IN, N_OUT, INPUTS, OUTPUTS,
 SLOW, CALL, ARRAY_TYPE, FLOAT_TYPE, NUMBER_TYPE, DESCR, TUPLE_TYPE, RESULT_TYPE,
 OUT_NAME, NEW_ARRAY, MAX_ROWS, WIDTH, STATUS, CAREFUL, FINITE,
 TEMPORARY, HOLD_ROWS, BUSY, STREAMED, MEMORY, HANDLER,
 SET_HANDLER) = (8 * k for k in range(len(FIELDS)))  # fmt: skip

# Words of a port. `place` in functions is memory of two words: address of the data,
# number of rows (-1: a single state).
AXES, SIZE, LENGTHS, PORT = 0, 8, 16, 48
MAX_PORTS = 64  # maximum number of ports of a Program
MAX_AXES = 4  # maximum number of axes of a port

# Heads of CPython objects; PyArrayObject_fields of NumPy 1 and 2; Py_buffer.
TYPE, VALUE, LENGTH, ITEMS = 8, 16, 16, 24
DATA, ND, DIMS, KIND, FLAGS = 16, 24, 32, 56, 64
WHOLE, WRITEABLE = 0x101, 0x400  # C-contiguous and aligned; NPY_ARRAY_WRITEABLE
BUF_ND, BUF_FORMAT, BUF_SHAPE, BUF = 36, 40, 48, 80
BUF_WHOLE = 0x3C  # PyBUF_C_CONTIGUOUS | PyBUF_FORMAT; + 1 is PyBUF_WRITABLE
# Constants of float64; entry.py compiles for float32 with FOR_SINGLE instead.
ITEM, NUMBER, FORMAT = 8, 12, 0x64  # bytes; NPY_DOUBLE; the format "d" and its end
LOW, INFINITE = 0xFFFFFFFF, 0x7FF0000000000000
FOR_SINGLE = {"ITEM": 4, "NUMBER": 11, "FORMAT": 0x66}
INFINITE_SINGLE = 0x7F800000
PREPENDED = -0x8000000000000000  # PY_VECTORCALL_ARGUMENTS_OFFSET


def fits(axes, lengths, port, place):
    """Return 1 if an array has the port's shape, with or without a batch axis; else 0.

    On 1, the number of rows is stored at place + 8, -1 for a single state.
    """
    lead = axes - load(port + AXES)
    if lead == 0 and axes == 1 and load(lengths) == load(port + LENGTHS):
        store(place + 8, -1)  # most calls come this way
        return 1
    if lead < 0 or lead > 1:
        return 0
    k = 0
    while k < load(port + AXES):
        if load(lengths + 8 * (lead + k)) != load(port + LENGTHS + 8 * k):
            return 0
        k += 1
    store(place + 8, -1)
    if lead == 1:
        store(place + 8, load(lengths))
    return 1


def array_struct(o, d, port, place, writable):
    """Read an array from NumPy's struct; return 1 if it is valid for the port, else 0.

    Valid is a contiguous, aligned array of the Program's dtype and the port's shape,
    with or without a batch axis. On 1, the words at `place` are its data address and
    number of rows, -1 for a single state; on 0 they may be changed, too.
    """
    if load(o + TYPE) != load(d + ARRAY_TYPE) or load(o + KIND) != load(d + DESCR):
        return 0
    wanted = WHOLE + WRITEABLE * writable
    if load32(o + FLAGS) & wanted != wanted:
        return 0
    store(place, load(o + DATA))
    return fits(load32(o + ND), load(o + DIMS), port, place)


def array_buffer(o, d, port, place, writable):
    """Read an array by the buffer protocol; return 1 if it fits the port, else 0.

    Arguments and result are as of array_struct. No error is set.
    """
    if load(o + TYPE) != load(d + ARRAY_TYPE):
        return 0
    view = room(BUF)
    if PyObject_GetBuffer(o, view, BUF_WHOLE + writable) & LOW != 0:
        PyErr_Clear()
        return 0
    data = load(view)
    good = 0
    store(place, data)
    if load32(load(view + BUF_FORMAT)) & 0xFFFF == FORMAT and data & (ITEM - 1) == 0:
        good = fits(load32(view + BUF_ND), load(view + BUF_SHAPE), port, place)
    PyBuffer_Release(view)  # the caller's reference keeps the array alive
    return good


def is_finite(data, end):
    """Return 1 if all numbers at addresses from `data` to before `end` are finite.

    Otherwise return 0.
    """
    while data < end:
        if ITEM == 8:
            if load(data) & INFINITE == INFINITE:
                return 0
        elif load32(data) & INFINITE_SINGLE == INFINITE_SINGLE:
            return 0
        data += ITEM
    return 1


def all_finite(tables, ports, n):
    """Return 1 if all numbers of n ports are finite, else 0; for a single state."""
    k = 0
    while k < n:
        data = load(tables + 8 * k)
        if is_finite(data, data + ITEM * load(ports + PORT * k + SIZE)) == 0:
            return 0
        k += 1
    return 1


def overlaps(begin, end, tables, ports, n, rows):
    """Return 1 if memory [begin, end) overlaps data of one of n ports, else 0."""
    k = 0
    while k < n:
        other = load(tables + 8 * k)
        if begin < other + ITEM * load(ports + PORT * k + SIZE) * rows and other < end:
            return 1
        k += 1
    return 0


def leave(self, d, args, n, names):
    """Call Program.__call__ with the same arguments; return its result, 0 for an error.

    `args` has n positional arguments, then the values of the keywords `names`.
    """
    if names != 0:
        n_all = n + load(names + LENGTH)
    else:
        n_all = n
    memory = room(8 * n_all + 16) + 8
    store(memory, self)
    copy(memory + 8, args, 8 * n_all)
    return call(load(d + CALL), load(d + SLOW), memory, (n + 1) | PREPENDED, names)


def take_inputs(d, args, tables, strides, place):
    """Fill tables and strides from the arguments; return 1, or 0 if one is not valid.

    Valid are arrays, see `array_struct`, and for a port without axes also objects of
    FLOAT_TYPE and NUMBER_TYPE; not batches with different numbers of rows. On 1, the
    word at place + 8 is the number of rows, -1 for a single state. A stride is the
    bytes from row to row, 0 if the input is shared by all rows.
    """
    rows, k = -1, 0
    while k < load(d + N_IN):
        o = load(args + 8 * k)
        port = load(d + INPUTS) + PORT * k
        store(strides + 8 * k, 0)
        if array(o, d, port, place, 0):
            store(tables + 8 * k, load(place))
            if load(place + 8) >= 0:
                if rows >= 0 and rows != load(place + 8):
                    return 0
                rows = load(place + 8)
                store(strides + 8 * k, ITEM * load(port + SIZE))
        elif load(o + TYPE) == load(d + FLOAT_TYPE) and load(port + AXES) == 0:
            store(tables + 8 * k, o + VALUE)
        elif load(o + TYPE) == load(d + NUMBER_TYPE) and load(port + AXES) == 0:
            store(tables + 8 * k, o + VALUE)
        else:
            return 0
        k += 1
    store(place + 8, rows)
    return 1


def take_outputs(d, out, inputs, outputs, place, batch, rows):
    """Fill the table from `out`; return 1, or 0 if an array does not fit or overlaps.

    An array may overlap neither inputs nor other outputs. `out` is an array; for
    several outputs a tuple, or an object of RESULT_TYPE. Two words at `place` are
    changed. A single state has -1 for `batch` and 1 for `rows`.
    """
    n = load(d + N_OUT)
    if n != 1:
        of = load(out + TYPE)
        if of != load(d + TUPLE_TYPE) and of != load(d + RESULT_TYPE):
            return 0
        if load(out + LENGTH) != n:
            return 0
    k = 0
    while k < n:
        o = out
        if n != 1:
            o = load(out + ITEMS + 8 * k)
        port = load(d + OUTPUTS) + PORT * k
        if array(o, d, port, place, 1) == 0 or load(place + 8) != batch:
            return 0
        data = load(place)
        end = data + ITEM * load(port + SIZE) * rows
        if overlaps(data, end, inputs, load(d + INPUTS), load(d + N_IN), rows):
            return 0
        if overlaps(data, end, outputs, load(d + OUTPUTS), k, rows):
            return 0
        store(outputs + 8 * k, data)
        k += 1
    return 1


def new_array(d, axes, lengths, size):
    """Return the address of a new array, not initialised; 0 without memory.

    Without memory a Python error is set. At least 64 KiB (`size` [bytes]) use
    result_memory, where that is available. `lengths` has a word for each axis.
    """
    large = 0
    if size >= LARGE and load(d + MEMORY) != 0:
        large = 1
        before = call(load(d + SET_HANDLER), load(d + HANDLER))
    fresh = call(
        load(d + NEW_ARRAY), load(d + ARRAY_TYPE), axes, lengths, NUMBER, 0, 0, 0, 0, 0
    )
    if large:
        Py_DecRef(call(load(d + SET_HANDLER), before))
        Py_DecRef(before)
    return fresh


def make_outputs(d, outputs, made, values, place, batch):
    """Create the output arrays; return 1, or 0 without memory, with a Python error set.

    A scalar output of a single state (`batch` -1) is computed into `values` and has no
    array yet, 0 in `made`. COLD of the result memory is cleared before. On 0, arrays
    created so far are not released. Two words at `place` are changed.
    """
    lengths = room(8 * MAX_AXES + 8)
    if load(d + MEMORY) != 0:
        store(load(d + MEMORY) + COLD, 0)
    k = 0
    while k < load(d + N_OUT):
        port = load(d + OUTPUTS) + PORT * k
        axes = load(port + AXES)
        store(made + 8 * k, 0)
        store(outputs + 8 * k, values + 8 * k)
        if axes != 0 or batch >= 0:
            lead, size = 0, ITEM * load(port + SIZE)
            if batch >= 0:
                lead, size = 1, size * batch
                store(lengths, batch)
            copy(lengths + 8 * lead, port + LENGTHS, 8 * axes)
            fresh = new_array(d, axes + lead, lengths, size)
            if fresh == 0:
                return 0
            store(made + 8 * k, fresh)
            array(fresh, d, port, place, 1)
            store(outputs + 8 * k, load(place))
        k += 1
    return 1


def run_batch(d, inputs, strides, outputs, batch, out):
    """Run a batch, at least as many rows as lanes; return 0 on success.

    Any other result means that Python must run it: rows failed, with all outputs
    written, or another thread runs a batch of the Program. Numbers are not checked to
    be finite. The GIL is released for more than HOLD_ROWS rows. `out` is 0 if outputs
    are new arrays; STREAMED then runs if one was not in the processor's cache (COLD).
    """
    if load(d + BUSY) != 0:
        return 1
    kernel = load(d + BATCH)
    if out == 0 and load(d + MEMORY) != 0:
        if load(load(d + MEMORY) + COLD) != 0:
            kernel = load(d + STREAMED)
    # These are read now: without the GIL another thread may replace the interpreter by
    # a kernel, with other scratch memory.
    status, scratch = load(d + STATUS), load(d + BATCH_SCRATCH)
    if batch <= load(d + HOLD_ROWS):
        return call(kernel, inputs, strides, outputs, status, 0, batch, scratch)
    store(d + BUSY, 1)  # other threads may call meanwhile: the scratch memory is in use
    thread = PyEval_SaveThread()
    failed = call(kernel, inputs, strides, outputs, status, 0, batch, scratch)
    PyEval_RestoreThread(thread)
    store(d + BUSY, 0)
    return failed


def run_few(d, inputs, strides, outputs, batch):
    """Run fewer rows than lanes one by one; return 0, or 1 at the first row that fails.

    Outputs of earlier rows, and perhaps its own, are then written. Numbers are not
    checked to be finite. The addresses in `inputs` and `outputs` are advanced.
    """
    while batch > 0:
        if call(load(d + SCALAR), inputs, outputs, load(d + SCRATCH)) != 0:
            return 1
        k = 0
        while k < load(d + N_IN):
            store(inputs + 8 * k, load(inputs + 8 * k) + load(strides + 8 * k))
            k += 1
        k = 0
        while k < load(d + N_OUT):
            size = ITEM * load(load(d + OUTPUTS) + PORT * k + SIZE)
            store(outputs + 8 * k, load(outputs + 8 * k) + size)
            k += 1
        batch -= 1
    return 0


def run_single(d, inputs, outputs):
    """Run one state; return 0 on success, else another number.

    Where a check can fail, outputs are computed into temporary memory and copied last,
    so that a failed call, which Python must repeat, does not change them. If FINITE is
    set, numbers that are not finite fail.
    """
    if load(d + CAREFUL) == 0:
        return call(load(d + SCALAR), inputs, outputs, load(d + SCRATCH))
    finite = load(d + FINITE)
    if finite != 0 and all_finite(inputs, load(d + INPUTS), load(d + N_IN)) == 0:
        return 1
    memory = load(d + TEMPORARY)
    if call(load(d + SCALAR), inputs, memory, load(d + SCRATCH)) != 0:
        return 1
    if finite != 0 and all_finite(memory, load(d + OUTPUTS), load(d + N_OUT)) == 0:
        return 1
    k = 0
    while k < load(d + N_OUT):
        size = ITEM * load(load(d + OUTPUTS) + PORT * k + SIZE)
        copy(load(outputs + 8 * k), load(memory + 8 * k), size)
        k += 1
    return 0


def results(d, outputs, made):
    """Return the address of the result: an array, a float, or a named tuple of these.

    It is a new reference and takes over those in `made`, where 0 stands for a scalar
    and is replaced by its new float. 0 without memory, with a Python error: those in
    `made` are then not released.
    """
    k = 0
    while k < load(d + N_OUT):
        if load(made + 8 * k) == 0:
            store(made + 8 * k, PyFloat_FromDouble(real(load(outputs + 8 * k))))
        k += 1
    if load(d + N_OUT) == 1:
        return load(made)
    result = PyType_GenericAlloc(load(d + RESULT_TYPE), load(d + N_OUT))
    if result != 0:
        copy(result + ITEMS, made, 8 * load(d + N_OUT))
    return result


def entry(self, args, nargsf, names):
    """Serve one call: the vectorcall of Programs (PEP 590).

    A call that does not fit, or fails, is repeated by Program.__call__ in Python, which
    then returns the result or raises the error.

    Args:
        self: Address of the Program.
        args: Address of the arguments.
        nargsf: Number of positional arguments, with a flag in the highest bit.
        names: Address of the tuple of keywords, or 0.

    Returns:
        Address of the result, a new reference; 0 with a Python error set.
    """
    d = load(self + PLACE)
    n = nargsf & 0x7FFFFFFFFFFFFFFF
    out = 0
    if n != load(d + N_IN):
        return leave(self, d, args, n, names)
    if names != 0:
        if load(names + LENGTH) != 1 or load(names + ITEMS) != load(d + OUT_NAME):
            return leave(self, d, args, n, names)
        out = load(args + 8 * n)
    inputs, strides, outputs = (
        room(8 * MAX_PORTS),
        room(8 * MAX_PORTS),
        room(8 * MAX_PORTS),
    )
    made, values, place = room(8 * MAX_PORTS), room(8 * MAX_PORTS), room(16)
    if take_inputs(d, args, inputs, strides, place) == 0:
        return leave(self, d, args, n, names)
    batch = load(place + 8)
    rows = batch
    if batch < 0:
        rows = 1
        if load(d + SCALAR) == 0:
            return leave(self, d, args, n, names)
    elif batch > load(d + MAX_ROWS) or load(d + FINITE) != 0:
        return leave(self, d, args, n, names)
    elif load(d + SCALAR) == 0 and batch < load(d + WIDTH):
        return leave(self, d, args, n, names)
    elif load(d + BATCH) == 0 and batch >= load(d + WIDTH):
        return leave(self, d, args, n, names)
    if out != 0:
        if take_outputs(d, out, inputs, outputs, place, batch, rows) == 0:
            return leave(self, d, args, n, names)
    elif make_outputs(d, outputs, made, values, place, batch) == 0:
        return 0
    if batch >= load(d + WIDTH):
        failed = run_batch(d, inputs, strides, outputs, batch, out)
    elif batch >= 0:
        failed = run_few(d, inputs, strides, outputs, batch)
    else:
        failed = run_single(d, inputs, outputs)
    if failed != 0:
        k = 0
        while out == 0 and k < load(d + N_OUT):
            Py_DecRef(load(made + 8 * k))
            k += 1
        return leave(self, d, args, n, names)
    if out != 0:
        Py_IncRef(out)
        return out
    return results(d, outputs, made)
