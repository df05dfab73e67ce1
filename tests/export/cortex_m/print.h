#ifndef __ASSEMBLER__
/* Shows a string by the semihosting of the emulator. */
#define DYN_PRINT(text) semihosting_print(text)
static inline void semihosting_print(const char *text) {
    register int operation __asm__("r0") = 4;
    register const char *start __asm__("r1") = text;
    __asm__ volatile("bkpt 0xab" : "+r"(operation) : "r"(start) : "memory");
}
#endif
