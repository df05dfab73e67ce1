"""LLVM text of the entry: readers of one array, and the call itself.

`@array(object, d, port, writable, result)` checks that an object is a float64 array of
a port's shape, with or without the axis of a batch; it gives 1 and fills result: address
of the data, rows (-1 for none). Local variables are memory that LLVM's passes remove.
"""

_SHAPE = """
; Compare nd, dims with a port; the rows of a batch are the axis before.
define internal i64 @fits(i64 %nd, ptr %dims, ptr %port, ptr %result) {
  %ndim = load i64, ptr %port
  %lead = sub i64 %nd, %ndim
  %good = icmp ult i64 %lead, 2
  br i1 %good, label %known, label %bad
known:
  %shape = getelementptr i64, ptr %port, i64 2
  %own = getelementptr i64, ptr %dims, i64 %lead
  br label %test
test:
  %k = phi i64 [0, %known], [%next, %same]
  %more = icmp slt i64 %k, %ndim
  br i1 %more, label %axis, label %rows
axis:
  %pa = getelementptr i64, ptr %own, i64 %k
  %pb = getelementptr i64, ptr %shape, i64 %k
  %a = load i64, ptr %pa
  %b = load i64, ptr %pb
  %equal = icmp eq i64 %a, %b
  br i1 %equal, label %same, label %bad
same:
  %next = add i64 %k, 1
  br label %test
rows:
  %batch = icmp eq i64 %lead, 1
  br i1 %batch, label %many, label %one
many:
  %n = load i64, ptr %dims
  br label %one
one:
  %found = phi i64 [-1, %rows], [%n, %many]
  %pr = getelementptr i64, ptr %result, i64 1
  store i64 %found, ptr %pr
  ret i64 1
bad:
  ret i64 0
}
"""

STRUCT = (
    _SHAPE
    + """
define internal i64 @array(ptr %o, ptr %atype, ptr %descr, ptr %port, i64 %writable,
                           ptr %result) {
  %pt = getelementptr i8, ptr %o, i64 8
  %type = load ptr, ptr %pt
  %isarray = icmp eq ptr %type, %atype
  br i1 %isarray, label %a1, label %bad
a1:
  %pd = getelementptr i8, ptr %o, i64 @descr@
  %of = load ptr, ptr %pd
  %isreal = icmp eq ptr %of, %descr
  br i1 %isreal, label %a2, label %bad
a2:
  %pf = getelementptr i8, ptr %o, i64 @flags@
  %flags = load i32, ptr %pf
  %w = icmp ne i64 %writable, 0
  %need = select i1 %w, i32 @writeable@, i32 0
  %all = or i32 %need, @wanted@
  %has = and i32 %flags, %all
  %whole = icmp eq i32 %has, %all
  br i1 %whole, label %a3, label %bad
a3:
  %pn = getelementptr i8, ptr %o, i64 @nd@
  %nd32 = load i32, ptr %pn
  %nd = sext i32 %nd32 to i64
  %ps = getelementptr i8, ptr %o, i64 @dims@
  %dims = load ptr, ptr %ps
  %pm = getelementptr i8, ptr %o, i64 @data@
  %data = load i64, ptr %pm
  store i64 %data, ptr %result
  %fit = call i64 @fits(i64 %nd, ptr %dims, ptr %port, ptr %result)
  ret i64 %fit
bad:
  ret i64 0
}
"""
)

# Py_buffer: buf 0, obj 8, len 16, itemsize 24, readonly 32, ndim 36, format 40, shape 48
BUFFER = (
    _SHAPE
    + """
declare i32 @PyObject_GetBuffer(ptr, ptr, i32)
declare void @PyBuffer_Release(ptr)
define internal i64 @array(ptr %o, ptr %atype, ptr %descr, ptr %port, i64 %writable,
                           ptr %result) {
  %view = alloca [80 x i8], align 16
  %pt = getelementptr i8, ptr %o, i64 8
  %type = load ptr, ptr %pt
  %isarray = icmp eq ptr %type, %atype
  br i1 %isarray, label %a1, label %bad
a1:
  %w = icmp ne i64 %writable, 0
  %how = select i1 %w, i32 61, i32 60
  %code = call i32 @PyObject_GetBuffer(ptr %o, ptr %view, i32 %how)
  %got = icmp eq i32 %code, 0
  br i1 %got, label %a2, label %clear
a2:
  %data = load i64, ptr %view
  store i64 %data, ptr %result
  %odd = and i64 %data, 7
  %even = icmp eq i64 %odd, 0
  %pf = getelementptr i8, ptr %view, i64 40
  %format = load ptr, ptr %pf
  %name = load i16, ptr %format, align 1
  %isreal = icmp eq i16 %name, 100
  %good = and i1 %even, %isreal
  br i1 %good, label %a3, label %drop
a3:
  %pn = getelementptr i8, ptr %view, i64 36
  %nd32 = load i32, ptr %pn
  %nd = sext i32 %nd32 to i64
  %ps = getelementptr i8, ptr %view, i64 48
  %dims = load ptr, ptr %ps
  %fit = call i64 @fits(i64 %nd, ptr %dims, ptr %port, ptr %result)
  call void @PyBuffer_Release(ptr %view)
  ret i64 %fit
drop:
  call void @PyBuffer_Release(ptr %view)
  ret i64 0
clear:
  call void @PyErr_Clear()
  ret i64 0
bad:
  ret i64 0
}
"""
)

ENTRY = """
@where = global i64 0
declare void @PyErr_Clear()
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)
declare ptr @PyFloat_FromDouble(double)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare ptr @PyType_GenericAlloc(ptr, i64)
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

; Whether n numbers are all finite.
define internal i1 @finite(ptr %x, i64 %n) {
  br label %test
test:
  %k = phi i64 [0, %0], [%next, %look]
  %more = icmp slt i64 %k, %n
  br i1 %more, label %look, label %yes
look:
  %p = getelementptr i64, ptr %x, i64 %k
  %bits = load i64, ptr %p
  %exponent = and i64 %bits, 9218868437227405312
  %bad = icmp eq i64 %exponent, 9218868437227405312
  %next = add i64 %k, 1
  br i1 %bad, label %no, label %test
yes:
  ret i1 true
no:
  ret i1 false
}

; Call the Python function `slow` with the same arguments, the Program before them.
define internal ptr @leave(ptr %self, ptr %slow, ptr %args, i64 %nargs, ptr %kw) {
  %named = icmp ne ptr %kw, null
  br i1 %named, label %some, label %count
some:
  %pk = getelementptr i8, ptr %kw, i64 16
  %nk = load i64, ptr %pk
  br label %count
count:
  %keywords = phi i64 [0, %0], [%nk, %some]
  %all = add i64 %nargs, %keywords
  %size = add i64 %all, 2
  %room = alloca ptr, i64 %size
  %own = getelementptr ptr, ptr %room, i64 1
  store ptr %self, ptr %own
  %rest = getelementptr ptr, ptr %own, i64 1
  %bytes = mul i64 %all, 8
  call void @llvm.memcpy.p0.p0.i64(ptr %rest, ptr %args, i64 %bytes, i1 false)
  %n = add i64 %nargs, 1
  %flagged = or i64 %n, -9223372036854775808
  %r = call ptr @PyObject_Vectorcall(ptr %slow, ptr %own, i64 %flagged, ptr %kw)
  ret ptr %r
}

define ptr @entry(ptr %self, ptr %args, i64 %nargsf, ptr %kw) {
  %in = alloca [@most@ x ptr], align 16
  %strides = alloca [@most@ x i64], align 16
  %outs = alloca [@most@ x ptr], align 16
  %made = alloca [@most@ x ptr], align 16
  %result = alloca [2 x i64], align 16
  %rows = alloca i64
  %values = alloca [@most@ x double], align 16
  %nd = alloca [8 x i64], align 16
  %offset = load i64, ptr @where
  %pself = getelementptr i8, ptr %self, i64 %offset
  %d = load ptr, ptr %pself
@fields@
  store i64 -1, ptr %rows
  %nargs = and i64 %nargsf, 9223372036854775807
  %pr1 = getelementptr i64, ptr %result, i64 1
  %complete = icmp eq i64 %nargs, %d_n_in
  br i1 %complete, label %keywords, label %slow
keywords:
  %plain = icmp eq ptr %kw, null
  br i1 %plain, label %inputs, label %named
named:
  %pkn = getelementptr i8, ptr %kw, i64 16
  %kn = load i64, ptr %pkn
  %single = icmp eq i64 %kn, 1
  br i1 %single, label %named1, label %slow
named1:
  %pk0 = getelementptr i8, ptr %kw, i64 24
  %k0 = load ptr, ptr %pk0
  %isout = icmp eq ptr %k0, %a_out_name
  br i1 %isout, label %named2, label %slow
named2:
  %pout = getelementptr ptr, ptr %args, i64 %nargs
  %given = load ptr, ptr %pout
  br label %inputs
inputs:
  %out = phi ptr [null, %keywords], [%given, %named2]
  br label %intest
intest:
  %k = phi i64 [0, %inputs], [%knext, %inkeep]
  %inmore = icmp slt i64 %k, %d_n_in
  br i1 %inmore, label %inlook, label %outputs
inlook:
  %pa = getelementptr ptr, ptr %args, i64 %k
  %a = load ptr, ptr %pa
  %portat = mul i64 %k, @port@
  %port = getelementptr i8, ptr %a_inputs, i64 %portat
  %knext = add i64 %k, 1
  %pin = getelementptr ptr, ptr %in, i64 %k
  %pstride = getelementptr i64, ptr %strides, i64 %k
  store i64 0, ptr %pstride
  %isarr = call i64 @array(ptr %a, ptr %a_array_type, ptr %a_descr, ptr %port, i64 0,
                           ptr %result)
  %isarr1 = icmp ne i64 %isarr, 0
  br i1 %isarr1, label %inarray, label %innumber
innumber:
  %ptype = getelementptr i8, ptr %a, i64 8
  %type = load ptr, ptr %ptype
  %isfloat = icmp eq ptr %type, %a_float_type
  %ndim = load i64, ptr %port
  %isnumber = icmp eq i64 %ndim, 0
  %number = and i1 %isfloat, %isnumber
  br i1 %number, label %infloat, label %slow
infloat:
  %pvalue = getelementptr i8, ptr %a, i64 16
  store ptr %pvalue, ptr %pin
  br label %inkeep
inarray:
  %data = load ptr, ptr %result
  store ptr %data, ptr %pin
  %n = load i64, ptr %pr1
  %isbatch = icmp sge i64 %n, 0
  br i1 %isbatch, label %inbatch, label %inkeep
inbatch:
  %psize = getelementptr i64, ptr %port, i64 1
  %size = load i64, ptr %psize
  %bytes = mul i64 %size, 8
  store i64 %bytes, ptr %pstride
  %before = load i64, ptr %rows
  %fresh = icmp eq i64 %before, -1
  %agree = icmp eq i64 %before, %n
  %fine = or i1 %fresh, %agree
  store i64 %n, ptr %rows
  br i1 %fine, label %inkeep, label %slow
inkeep:
  br label %intest
outputs:
  %batch = load i64, ptr %rows
  %many = icmp sge i64 %batch, 0
  %factor = select i1 %many, i64 %batch, i64 1
  br i1 %many, label %can, label %cansingle
can:
  %few = icmp sle i64 %batch, %d_max_rows
  %enough = icmp sge i64 %batch, %d_width
  %has = icmp ne i64 %d_lanes, 0
  %c1 = and i1 %few, %enough
  %c2 = and i1 %c1, %has
  %nofinite = icmp eq i64 %d_finite, 0
  %c3 = and i1 %c2, %nofinite
  br i1 %c3, label %place, label %slow
cansingle:
  %hasone = icmp ne i64 %d_scalar, 0
  br i1 %hasone, label %place, label %slow
place:
  %fixed = icmp ne ptr %out, null
  %several = icmp ne i64 %d_n_out, 1
  br i1 %fixed, label %fixed1, label %new
fixed1:
  br i1 %several, label %tuple, label %outtest0
tuple:
  %potype = getelementptr i8, ptr %out, i64 8
  %otype = load ptr, ptr %potype
  %istuple = icmp eq ptr %otype, %a_tuple_type
  %isresult = icmp eq ptr %otype, %a_result_type
  %eithertuple = or i1 %istuple, %isresult
  br i1 %eithertuple, label %tuple1, label %slow
tuple1:
  %polen = getelementptr i8, ptr %out, i64 16
  %olen = load i64, ptr %polen
  %rightlen = icmp eq i64 %olen, %d_n_out
  %items = getelementptr i8, ptr %out, i64 24
  br i1 %rightlen, label %outtest0, label %slow
outtest0:
  %from = phi ptr [%items, %tuple1], [null, %fixed1]
  br label %outtest
outtest:
  %j = phi i64 [0, %outtest0], [%jnext, %overlapend]
  %outmore = icmp slt i64 %j, %d_n_out
  br i1 %outmore, label %outlook, label %run
outlook:
  %jnext = add i64 %j, 1
  %pitem = getelementptr ptr, ptr %from, i64 %j
  br i1 %several, label %item, label %outitem
item:
  %oi = load ptr, ptr %pitem
  br label %outitem
outitem:
  %o = phi ptr [%out, %outlook], [%oi, %item]
  %oportat = mul i64 %j, @port@
  %oport = getelementptr i8, ptr %a_outputs, i64 %oportat
  %isout1 = call i64 @array(ptr %o, ptr %a_array_type, ptr %a_descr, ptr %oport, i64 1,
                            ptr %result)
  %isout2 = icmp ne i64 %isout1, 0
  br i1 %isout2, label %outfits, label %slow
outfits:
  %odata = load ptr, ptr %result
  %on = load i64, ptr %pr1
  %samerows = icmp eq i64 %on, %batch
  %pouts = getelementptr ptr, ptr %outs, i64 %j
  store ptr %odata, ptr %pouts
  %posize = getelementptr i64, ptr %oport, i64 1
  %osize = load i64, ptr %posize
  %obytes1 = mul i64 %osize, 8
  %obytes = mul i64 %obytes1, %factor
  %oend = getelementptr i8, ptr %odata, i64 %obytes
  br i1 %samerows, label %overlap, label %slow
overlap:
  %i = phi i64 [0, %outfits], [%inext, %overlapnext]
  %imore = icmp slt i64 %i, %d_n_in
  br i1 %imore, label %overlaplook, label %others
overlaplook:
  %inext = add i64 %i, 1
  %pin2 = getelementptr ptr, ptr %in, i64 %i
  %ibegin = load ptr, ptr %pin2
  %iportat = mul i64 %i, @port@
  %iport = getelementptr i8, ptr %a_inputs, i64 %iportat
  %pisize = getelementptr i64, ptr %iport, i64 1
  %isize = load i64, ptr %pisize
  %ibytes1 = mul i64 %isize, 8
  %ibytes = mul i64 %ibytes1, %factor
  %iend = getelementptr i8, ptr %ibegin, i64 %ibytes
  %l1 = icmp ult ptr %odata, %iend
  %l2 = icmp ult ptr %ibegin, %oend
  %touch = and i1 %l1, %l2
  br i1 %touch, label %slow, label %overlapnext
overlapnext:
  br label %overlap
others:
  %e = phi i64 [0, %overlap], [%enext, %otherlook]
  %emore = icmp slt i64 %e, %j
  br i1 %emore, label %otherlook, label %overlapend
otherlook:
  %enext = add i64 %e, 1
  %pother = getelementptr ptr, ptr %outs, i64 %e
  %ebegin = load ptr, ptr %pother
  %eportat = mul i64 %e, @port@
  %eport = getelementptr i8, ptr %a_outputs, i64 %eportat
  %pesize = getelementptr i64, ptr %eport, i64 1
  %esize = load i64, ptr %pesize
  %ebytes1 = mul i64 %esize, 8
  %ebytes = mul i64 %ebytes1, %factor
  %eend = getelementptr i8, ptr %ebegin, i64 %ebytes
  %m1 = icmp ult ptr %odata, %eend
  %m2 = icmp ult ptr %ebegin, %oend
  %etouch = and i1 %m1, %m2
  br i1 %etouch, label %slow, label %others
overlapend:
  br label %outtest

new:
  %q = phi i64 [0, %place], [%qnext, %newkeep]
  %newmore = icmp slt i64 %q, %d_n_out
  br i1 %newmore, label %newlook, label %run
newlook:
  %qnext = add i64 %q, 1
  %nportat = mul i64 %q, @port@
  %nport = getelementptr i8, ptr %a_outputs, i64 %nportat
  %nndim = load i64, ptr %nport
  %pmade = getelementptr ptr, ptr %made, i64 %q
  %pnouts = getelementptr ptr, ptr %outs, i64 %q
  %nodims = icmp eq i64 %nndim, 0
  %one = icmp slt i64 %batch, 0
  %afloat = and i1 %nodims, %one
  br i1 %afloat, label %newfloat, label %newarray
newfloat:
  store ptr null, ptr %pmade
  %pvalue2 = getelementptr double, ptr %values, i64 %q
  store ptr %pvalue2, ptr %pnouts
  br label %newkeep
newarray:
  %nshape = getelementptr i64, ptr %nport, i64 2
  %lead = zext i1 %many to i64
  %ndall = add i64 %nndim, %lead
  store i64 %batch, ptr %nd
  %ndown = getelementptr i64, ptr %nd, i64 %lead
  %shapebytes = mul i64 %nndim, 8
  call void @llvm.memcpy.p0.p0.i64(ptr %ndown, ptr %nshape, i64 %shapebytes, i1 false)
  %nd32 = trunc i64 %ndall to i32
  %fresharray = call ptr %a_new_array(ptr %a_array_type, i32 %nd32, ptr %nd, i32 12,
      ptr null, ptr null, i32 0, i32 0, ptr null)
  %failed = icmp eq ptr %fresharray, null
  br i1 %failed, label %clean, label %newarray1
newarray1:
  store ptr %fresharray, ptr %pmade
  %read = call i64 @array(ptr %fresharray, ptr %a_array_type, ptr %a_descr, ptr %nport,
                          i64 1, ptr %result)
  %ndata = load ptr, ptr %result
  store ptr %ndata, ptr %pnouts
  br label %newkeep
newkeep:
  br label %new

run:
  br i1 %many, label %runlanes, label %runone
runlanes:
  %isbusy = load i64, ptr %p_busy
  %isfree = icmp eq i64 %isbusy, 0
  br i1 %isfree, label %runlanes1, label %undo
runlanes1:
  %long = icmp sgt i64 %batch, %d_hold_rows
  br i1 %long, label %unlock, label %held
held:
  %hbad = call i64 %a_lanes(ptr %in, ptr %strides, ptr %outs, ptr %a_status, i64 0,
                            i64 %batch, ptr %a_lane_scratch)
  br label %ranlanes
; Long work: others may run meanwhile; the scratch memory is marked as taken.
unlock:
  store i64 1, ptr %p_busy
  %thread = call ptr @PyEval_SaveThread()
  %ubad = call i64 %a_lanes(ptr %in, ptr %strides, ptr %outs, ptr %a_status, i64 0,
                            i64 %batch, ptr %a_lane_scratch)
  call void @PyEval_RestoreThread(ptr %thread)
  store i64 0, ptr %p_busy
  br label %ranlanes
ranlanes:
  %lbad = phi i64 [%hbad, %held], [%ubad, %unlock]
  %lfine = icmp eq i64 %lbad, 0
  br i1 %lfine, label %deliver, label %undo
runone:
  %checks = icmp ne i64 %d_finite, 0
  br i1 %checks, label %checkin, label %runone1
checkin:
  %g = phi i64 [0, %runone], [%gnext, %checkin1]
  %gmore = icmp slt i64 %g, %d_n_in
  br i1 %gmore, label %checkin1, label %runone1
checkin1:
  %gnext = add i64 %g, 1
  %pgin = getelementptr ptr, ptr %in, i64 %g
  %gin = load ptr, ptr %pgin
  %gportat = mul i64 %g, @port@
  %gport = getelementptr i8, ptr %a_inputs, i64 %gportat
  %pgsize = getelementptr i64, ptr %gport, i64 1
  %gsize = load i64, ptr %pgsize
  %gfinite = call i1 @finite(ptr %gin, i64 %gsize)
  br i1 %gfinite, label %checkin, label %undo
runone1:
  %careful = icmp ne i64 %d_careful, 0
  %target = select i1 %careful, ptr %a_temporary, ptr %outs
  %status = call i64 %a_scalar(ptr %in, ptr %target, ptr %a_scratch)
  %sfine = icmp eq i64 %status, 0
  br i1 %sfine, label %after, label %undo
after:
  br i1 %careful, label %copy, label %deliver
copy:
  %h = phi i64 [0, %after], [%hnext, %copy2]
  %hmore = icmp slt i64 %h, %d_n_out
  br i1 %hmore, label %copy1, label %copyall
copy1:
  %hnext = add i64 %h, 1
  %phfrom = getelementptr ptr, ptr %a_temporary, i64 %h
  %hfrom = load ptr, ptr %phfrom
  %hportat = mul i64 %h, @port@
  %hport = getelementptr i8, ptr %a_outputs, i64 %hportat
  %phsize = getelementptr i64, ptr %hport, i64 1
  %hsize = load i64, ptr %phsize
  br i1 %checks, label %checkout, label %copy2
checkout:
  %hfinite = call i1 @finite(ptr %hfrom, i64 %hsize)
  br i1 %hfinite, label %copy2, label %undo
copy2:
  br label %copy
copyall:
  %u = phi i64 [0, %copy], [%unext, %copyone]
  %umore = icmp slt i64 %u, %d_n_out
  br i1 %umore, label %copyone, label %deliver
copyone:
  %unext = add i64 %u, 1
  %pufrom = getelementptr ptr, ptr %a_temporary, i64 %u
  %ufrom = load ptr, ptr %pufrom
  %puto = getelementptr ptr, ptr %outs, i64 %u
  %uto = load ptr, ptr %puto
  %uportat = mul i64 %u, @port@
  %uport = getelementptr i8, ptr %a_outputs, i64 %uportat
  %pusize = getelementptr i64, ptr %uport, i64 1
  %usize = load i64, ptr %pusize
  %ubytes = mul i64 %usize, 8
  call void @llvm.memcpy.p0.p0.i64(ptr %uto, ptr %ufrom, i64 %ubytes, i1 false)
  br label %copyall

deliver:
  br i1 %fixed, label %giveout, label %give
giveout:
  call void @Py_IncRef(ptr %out)
  ret ptr %out
give:
  %y = phi i64 [0, %deliver], [%ynext, %give2]
  %ymore = icmp slt i64 %y, %d_n_out
  br i1 %ymore, label %give1, label %giveall
give1:
  %ynext = add i64 %y, 1
  %pymade = getelementptr ptr, ptr %made, i64 %y
  %ymade = load ptr, ptr %pymade
  %yfloat = icmp eq ptr %ymade, null
  br i1 %yfloat, label %givefloat, label %give2
givefloat:
  %pyvalue = getelementptr ptr, ptr %outs, i64 %y
  %yvalue = load ptr, ptr %pyvalue
  %number1 = load double, ptr %yvalue
  %newfloat1 = call ptr @PyFloat_FromDouble(double %number1)
  store ptr %newfloat1, ptr %pymade
  br label %give2
give2:
  br label %give
giveall:
  br i1 %several, label %givetuple, label %giveone
giveone:
  %only = load ptr, ptr %made
  ret ptr %only
givetuple:
  %t = call ptr @PyType_GenericAlloc(ptr %a_result_type, i64 %d_n_out)
  %tbad = icmp eq ptr %t, null
  br i1 %tbad, label %clean, label %fill
fill:
  %titems = getelementptr i8, ptr %t, i64 24
  %tbytes = mul i64 %d_n_out, 8
  call void @llvm.memcpy.p0.p0.i64(ptr %titems, ptr %made, i64 %tbytes, i1 false)
  ret ptr %t

; Nothing was delivered: drop new arrays, let Python find out and say what is wrong.
undo:
  br i1 %fixed, label %slow, label %undotest
undotest:
  %z = phi i64 [0, %undo], [%znext, %undo2]
  %zmore = icmp slt i64 %z, %d_n_out
  br i1 %zmore, label %undo1, label %slow
undo1:
  %znext = add i64 %z, 1
  %pzmade = getelementptr ptr, ptr %made, i64 %z
  %zmade = load ptr, ptr %pzmade
  call void @Py_DecRef(ptr %zmade)
  br label %undo2
undo2:
  br label %undotest
clean:
  ret ptr null
slow:
  %r = call ptr @leave(ptr %self, ptr %a_slow, ptr %args, i64 %nargs, ptr %kw)
  ret ptr %r
}
"""
