# SPDX-License-Identifier: Apache-2.0
sumac_unit_test(collective USES worker)
