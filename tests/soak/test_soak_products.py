"""All combinations of what an ordinary run meets in a few: see `cover`."""
from test_alternatives import test_answers_are_valid_distinct_and_irreducible  # noqa: F401
from test_boxes import (pytestmark, test_levels_that_were_left_out_are_in_no_better_answer, test_plateaus_are_explained_in_full,  # noqa: F401
                        test_what_is_proven_of_numbers_that_float_tells_apart_is_true_and_of_others_nothing_is)
from test_construct import test_construct_equals_algorithm_1, test_the_best_state_seen_equals_the_loop  # noqa: F401
from test_images import test_blocks_bounds_and_untouched_pixels  # noqa: F401
from test_proof import (test_calibrated_trees_are_read_and_their_proofs_hold_for_all_rows,  # noqa: F401
                        test_proofs_hold_where_every_curve_jumps_at_the_sums_of_a_row)
from test_tails import test_no_proof_denies_a_value_that_stands_in_the_training_rows  # noqa: F401
from test_checks import test_bad_days_raise_an_alarm_and_quiet_ones_do_not  # noqa: F401
