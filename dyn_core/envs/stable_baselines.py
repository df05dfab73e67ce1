"""Task environments as a VecEnv of Stable-Baselines3. Needs the extra `sb3`.

A state has ns numbers, an action na, an observation no: attributes of the task.
"""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np

from dyn_core.envs.rules import gymnasium
from dyn_core.envs.vector import TaskVectorEnv
from dyn_core.errors import NearAttributes, SettingError, UnsupportedError
from dyn_core.tasks import RobotTask, Task

try:
    from stable_baselines3.common.monitor import Monitor
    from stable_baselines3.common.vec_env import VecEnv
except (ImportError, OSError) as error:  # the latter: a broken library of PyTorch
    raise UnsupportedError(
        f"dyn_core.envs.sb3 needs Stable-Baselines3 ({error}):"
        " pip install 'dyn_ros[sb3]'"
    ) from error


class TaskVecEnv(NearAttributes, VecEnv):  # type: ignore[misc]
    """Environments of one task that step together, for Stable-Baselines3.

    Each step returns new arrays. An environment that finishes is reset in the same
    step; its info then has terminal_observation, TimeLimit.truncated, and `episode`
    with the sum of rewards r, the number of steps l and the seconds t since
    construction, so that no Monitor is needed. A row whose motion diverged has
    {"diverged": True}. All rows draw from one generator; `seed` seeds it. The arguments
    are those of dyn_core.envs.sb3; `vector` is the TaskVectorEnv.
    """

    def __init__(
        self, task: str | Task | RobotTask, num_envs: int = 1, **settings: Any
    ) -> None:
        for key in ("autoreset_mode", "copy"):
            if key in settings:
                message = f"{key} is set by the rules of Stable-Baselines3; omit it"
                raise SettingError(message, key)
        settings = {"dtype": "float32", "autoreset_mode": "SameStep"} | settings
        self.vector = vector = TaskVectorEnv(task, num_envs, **settings)
        space = vector.single_action_space
        if isinstance(space, gymnasium.spaces.Box):  # in the type of the networks
            low, high = space.low.astype(np.float32), space.high.astype(np.float32)
            space = gymnasium.spaces.Box(low, high, dtype=np.float32)
        self._actions: Any = None
        self._returns = np.zeros(vector.num_envs)
        self._lengths = np.zeros(vector.num_envs, int)
        self._start = perf_counter()
        super().__init__(vector.num_envs, vector.single_observation_space, space)

    def reset(self) -> np.ndarray:
        """Begin all episodes; return their first observations, (num_envs, no).

        The seed of the last call of `seed` and the options of the last set_options are
        used once; after an error they stay. Options, given for all environments, are
        `state`, (ns,) each [SI], and `reset_mask`, a boolean each: where it is False,
        the episode goes on, and the result has its present observation.
        """
        keys = sorted({key for part in self._options for key in part})
        if any(len(part) != len(keys) for part in self._options):
            message = "options of some environments; valid: the same keys for all"
            raise SettingError(message, "options")
        options = {key: [part[key] for part in self._options] for key in keys}
        seen, _ = self.vector.reset(seed=self._seeds[0], options=options)
        rows = options.get("reset_mask", slice(None))
        self._returns[rows], self._lengths[rows] = 0.0, 0
        self._reset_seeds()
        self._reset_options()
        return seen

    def step_async(self, actions: np.ndarray) -> None:
        """Keep actions, (num_envs, na) or (num_envs,), unchecked and not copied."""
        self._actions = actions

    def step_wait(
        self,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """Return observations, rewards, ends of episodes and infos after one step.

        They are new arrays (num_envs, no), (num_envs,), (num_envs,) and one dictionary
        for each environment. An episode ends if it is terminated or truncated.
        """
        seen, reward, ended, cut, more = self.vector.step(self._actions)
        self._returns += reward
        self._lengths += 1
        done = ended | cut
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for row in np.flatnonzero(more.get("diverged", ())):
            infos[row]["diverged"] = True
        seconds = round(perf_counter() - self._start, 6)
        for row in np.flatnonzero(done):
            total, length = float(self._returns[row]), int(self._lengths[row])
            infos[row] |= {
                "terminal_observation": more["final_obs"][row],
                "TimeLimit.truncated": bool(cut[row] and not ended[row]),
                "episode": {"r": total, "l": length, "t": seconds},
            }
        self._returns[done], self._lengths[done] = 0.0, 0
        return seen, reward, done, infos

    def close(self) -> None:
        """Close the environments."""
        self.vector.close()

    def get_images(self) -> Any:
        """Return a picture (400, 600, 3) uint8, or None, of each environment."""
        return self.vector.render() or [None] * self.num_envs

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Return an attribute of the TaskVectorEnv, once for each index (None: all)."""
        return [getattr(self.vector, attr_name) for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Set an attribute that all environments share; refuse `indices` of fewer."""
        if len(set(self._get_indices(indices))) < self.num_envs:
            message = f"'{attr_name}' is the same for all environments; valid: no index"
            raise SettingError(message, "indices")
        setattr(self.vector, attr_name, value)

    def env_method(
        self, method_name: str, *args: Any, indices: Any = None, **options: Any
    ) -> list[Any]:
        """Call a method of the TaskVectorEnv once; return the result for each index.

        Of an array or tuple with num_envs entries, such as the states of get_state,
        each index gets its entry; any other result is repeated.
        """
        result = getattr(self.vector, method_name)(*args, **options)
        if not isinstance(result, (np.ndarray, tuple)) or len(result) != self.num_envs:
            result = [result] * self.num_envs
        return [result[row] for row in self._get_indices(indices)]

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        """Return, by index, True for Monitor: infos have the `episode` it writes."""
        return [wrapper_class is Monitor for _ in self._get_indices(indices)]
