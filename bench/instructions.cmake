# SPDX-License-Identifier: Apache-2.0
# instructions -- what one operation costs in instructions, of two builds. bench/instructions/instructions compiles operations.c with the
# headers of either build; here it is seen to compile.
sumac_program(operations SOURCES instructions/operations.c USES sumac_shared)
