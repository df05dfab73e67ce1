"""Object files of exports: LLVM IR, ELF, WebAssembly, linking."""
