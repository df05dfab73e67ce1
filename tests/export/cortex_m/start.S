@ Reset of a Cortex-M: allow the floating-point unit, run main, end the emulator.
.syntax unified
.thumb
.section .isr_vector,"a"
.word 0x203F0000
.word Reset_Handler+1
.text
.thumb_func
.globl Reset_Handler
Reset_Handler:
 ldr r0,=0xE000ED88
 ldr r1,[r0]
 orr r1,r1,#(0xF<<20)
 str r1,[r0]
 dsb
 isb
 bl main
 ldr r1,=0x20026
 movs r0,#0x18
 bkpt 0xab
 b .
