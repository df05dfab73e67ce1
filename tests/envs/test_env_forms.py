"""The single form of an environment and the vector form are one environment."""

import numpy as np
import pytest

pytest.importorskip("gymnasium", reason="gymnasium is not installed (extra env)")

from dyn_core.envs import TaskEnv, TaskVectorEnv

NAMES = ("cart_pole", "walker", "weight_lifter", "reach", "quadruped_stand")
STEPS, LANE = 200, 1


@pytest.mark.one_of(2)
@pytest.mark.parametrize("name", NAMES)
def test_a_lane_is_the_single_form_bit_for_bit(name):
    """Two hundred steps, episodes that end and are begun anew, or continue."""
    many = TaskVectorEnv(name, 3, max_episode_steps=70, autoreset_mode="Disabled")
    one = TaskEnv(name, max_episode_steps=70)
    many.reset(seed=4)
    many.action_space.seed(4)
    one.reset(options={"state": many.get_state()[LANE]})
    ends = []
    for k in range(STEPS):
        actions = many.action_space.sample()
        seen, reward, over, late, _ = many.step(actions)
        single = one.step(actions[LANE])
        row = seen[LANE], reward[LANE], over[LANE], late[LANE]
        for a, b in zip(single[:4], row, strict=True):
            assert np.asarray(a).tobytes() == np.asarray(b).tobytes()
        ends.append(bool(over[LANE] or late[LANE]))
        if late[LANE] and k < 150:
            mask = np.arange(3) == LANE
            again = many.reset(options={"reset_mask": mask})[0][LANE]
            first = one.reset(options={"state": many.get_state()[LANE]})[0]
            assert first.tobytes() == again.tobytes()
    assert any(ends)
    assert one.get_state().tobytes() == many.get_state()[LANE].tobytes()
