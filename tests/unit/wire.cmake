# SPDX-License-Identifier: Apache-2.0
sumac_unit_test(wire USES wire)
sumac_unit_test(wire_strings USES wire)
sumac_unit_test(printable USES wire)
