# SPDX-License-Identifier: Apache-2.0
sumac_unit_test(command USES commands)
sumac_unit_test(json USES commands)
sumac_unit_test(options USES commands)
sumac_unit_test(pattern USES commands)
sumac_unit_test(find_cluster USES commands)
sumac_unit_test(print_array USES commands)
sumac_unit_test(run_output USES commands)
target_link_options(unit_run_output PRIVATE -Wl,--wrap=write -Wl,--wrap=ioctl) # fails; says how wide a terminal is
sumac_unit_test(histogram USES commands)
sumac_unit_test(descriptors USES commands)
sumac_unit_test(stats USES commands)
sumac_unit_test(table USES commands)
sumac_unit_test(number USES commands)
sumac_unit_test(array_file USES commands)
target_link_options(unit_array_file PRIVATE -Wl,--wrap=write) # writes some bytes at a time
sumac_unit_test(run_record USES commands)
sumac_unit_test(names USES commands)
sumac_unit_test(roster USES commands)
target_link_options(unit_roster PRIVATE -Wl,--wrap=ask) # answers for two ps
sumac_unit_test(found_run USES commands)
sumac_unit_test(catalogue USES commands)
target_link_options(unit_catalogue PRIVATE -Wl,--wrap=ask) # answers for two ps
sumac_unit_test(wanted USES commands)
target_link_options(unit_wanted PRIVATE -Wl,--wrap=ask) # answers for two ps
