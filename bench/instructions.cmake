# instructions -- what one operation costs in instructions, of two builds. `operations` finds libsumac through LD_LIBRARY_PATH, so that one
# program runs with the library of either build.
sumac_program(operations SOURCES instructions/operations.c USES sumac_shared)
set_target_properties(operations PROPERTIES SKIP_BUILD_RPATH ON)
