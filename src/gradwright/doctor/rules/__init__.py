"""All rules, in the order they are asked: a rule that needs stronger evidence comes first."""

from gradwright.doctor.rules.base import Rule
from gradwright.doctor.rules.gw101_graph_used_twice import RULE as GW101
from gradwright.doctor.rules.gw102_state_keeps_graph import RULE as GW102
from gradwright.doctor.rules.gw103_losses_share_graph import RULE as GW103
from gradwright.doctor.rules.gw104_list_keeps_graphs import RULE as GW104
from gradwright.doctor.rules.gw111_changed_in_place import RULE as GW111
from gradwright.doctor.rules.gw112_stepped_before_backward import RULE as GW112
from gradwright.doctor.rules.gw113_backward_changes_saved import RULE as GW113
from gradwright.doctor.rules.gw114_in_place_on_leaf import RULE as GW114
from gradwright.doctor.rules.gw115_inference_tensor import RULE as GW115
from gradwright.doctor.rules.gw116_graph_copied import RULE as GW116
from gradwright.doctor.rules.gw201_recording_off import RULE as GW201
from gradwright.doctor.rules.gw202_graph_cut import RULE as GW202
from gradwright.doctor.rules.gw204_everything_frozen import RULE as GW204
from gradwright.doctor.rules.gw205_constant_loss import RULE as GW205
from gradwright.doctor.rules.gw206_unused_input import RULE as GW206
from gradwright.doctor.rules.gw207_input_without_grad import RULE as GW207
from gradwright.doctor.rules.gw208_non_scalar_loss import RULE as GW208
from gradwright.doctor.rules.gw301_non_leaf_in_optimizer import RULE as GW301
from gradwright.doctor.rules.gw601_reentrant_checkpoint import RULE as GW601
from gradwright.doctor.rules.gw602_recomputed_differently import RULE as GW602
from gradwright.doctor.rules.gw603_ddp_reducer import RULE as GW603
from gradwright.doctor.rules.gw701_no_second_derivative import RULE as GW701
from gradwright.doctor.rules.gw702_custom_function import RULE as GW702
from gradwright.doctor.rules.gw801_dtype_mismatch import RULE as GW801
from gradwright.doctor.rules.gw802_complex_loss import RULE as GW802
from gradwright.doctor.rules.gw803_device_mismatch import RULE as GW803
from gradwright.doctor.rules.gw804_integers_require_grad import RULE as GW804

RULES: tuple[Rule, ...] = (
    # a second backward: the special shapes first, what was built once last
    GW104,
    GW103,
    GW102,
    GW101,
    # a saved or protected tensor was changed, made without counters, or copied
    GW111,
    GW112,
    GW113,
    GW114,
    GW115,
    GW116,
    # a loss without a graph: what was asked for, who cut it off, what is frozen, constants last
    GW207,
    GW601,
    GW201,
    GW202,
    GW204,
    GW205,
    # each of these asks for an exception of its own kind
    GW206,
    GW208,
    GW301,
    GW602,
    GW603,
    GW701,
    GW702,
    GW801,
    GW802,
    GW803,
    GW804,
)

__all__ = ["RULES", "Rule"]
