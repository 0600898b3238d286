# SPDX-License-Identifier: Apache-2.0
sumac_unit_test(cluster USES cluster)
sumac_unit_test(own_variables USES cluster)
sumac_unit_test(own_identity USES cluster)
