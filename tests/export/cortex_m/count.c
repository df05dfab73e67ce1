/* Prints instructions of one call: QEMU's -icount shift=0 takes 1 ns for each, and the
   timer of the board has 25 MHz. HEADER, KERNEL, INPUTS, TABLES: see test_emulators.py. */
#include HEADER
#define CALLS 100
#define REGISTER(address) (*(volatile uint32_t *)(address))
static uint32_t now(void) { return REGISTER(0xE000E018); }
int main(void) {
    static TYPE in_memory[NUMBERS_IN], out_memory[NUMBERS_OUT];
    static unsigned char memory[SCRATCH_BYTES] __attribute__((aligned(64)));
    static const int sizes_in[] = {SIZES_IN}, sizes_out[] = {SIZES_OUT};
    const TYPE *in[sizeof sizes_in / sizeof(int)];
    TYPE *out[sizeof sizes_out / sizeof(int)];
    unsigned k, start;
    char text[12], *p = text + 11;
    const unsigned char *from = (const unsigned char *)INPUTS[0];
    for (k = 0; k < sizeof in_memory; k++) ((unsigned char *)in_memory)[k] = from[k];
    for (k = 0, start = 0; k < sizeof sizes_in / sizeof(int); start += sizes_in[k++])
        in[k] = in_memory + start;
    for (k = 0, start = 0; k < sizeof sizes_out / sizeof(int); start += sizes_out[k++])
        out[k] = out_memory + start;
    REGISTER(0xE000E014) = 0xFFFFFF;
    REGISTER(0xE000E018) = 0;
    REGISTER(0xE000E010) = 5;
    uint32_t begin = now();
    for (k = 0; k < CALLS; k++) (void)KERNEL(in, out, memory);
    uint32_t count = ((begin - now()) & 0xFFFFFF) * 40 / CALLS;
    *p = 0;
    do { *--p = (char)('0' + count % 10); count /= 10; } while (count);
    DYN_PRINT(p);
    return 0;
}
