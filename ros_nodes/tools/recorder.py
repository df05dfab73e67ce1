"""`dyn record` writes topics into a bag, `dyn echo` prints one as YAML."""

from __future__ import annotations

import argparse
import importlib
import math
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import yaml
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

from dyn_core.errors import DynError, SettingError, nearest, unknown_name
from dyn_core.recordings.bags import rosbags
from dyn_core.signals import noted_signals
from dyn_core.validation.file_names import file_kind
from ros_nodes.running.runtime import SIGNALS
from ros_nodes.tools.live import Live, connect

SEARCH = 0.2  # period of the search for new topics [s]
DEPTH = 1000  # depth of the queues


def run(arguments: argparse.Namespace) -> int:
    """Record until SIGINT, SIGTERM or SIGHUP, or for a duration.

    The output is a folder, or one file if its name ends with .mcap; without a message
    there is none.

    Args:
        arguments: Parsed arguments of `dyn record`.

    Returns:
        0; 1 if nothing was recorded or nothing came on a topic of --topics.

    Raises:
        SettingError: The output exists already, or its folder does not.
        DynError: ROS 2 does not start, or rosbags is not installed.
    """
    output, library = Path(arguments.output), rosbags()
    if file_kind(output, "output"):
        raise SettingError(f"{output} is there already; valid: a new name", "output")
    wanted = [x if x.startswith("/") else f"/{x}" for x in arguments.topics or ()]
    alone = output.suffix == ".mcap"
    if file_kind(output.parent, "output") != "folder":
        raise SettingError(
            f"--output {str(output)!r}; there is no such folder", "output"
        )
    work = Path(tempfile.mkdtemp(prefix=".dyn_record_", dir=output.parent))
    folder = work / output.stem if alone else output
    kind = library.rosbag2.StoragePlugin[arguments.storage.upper()]
    try:
        with noted_signals(*SIGNALS) as stop, connect(arguments.timeout) as live:
            writer = library.rosbag2.Writer(folder, version=9, storage_plugin=kind)
            with writer:
                recorder = TopicRecorder(live, writer, wanted)
                recorder.run(stop, arguments.duration)
        if not recorder.counts.total():
            shutil.rmtree(folder, ignore_errors=True)
        elif alone:
            (folder / f"{folder.name}.mcap").replace(output)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return recorder.report(output)


class TopicRecorder:
    """Writes topics into a bag; `writer` must be open.

    Attributes:
        wanted: Full names of the topics to record; empty: all.
        spans: Times of the first and the last message by topic, monotonic [s].
        seen: Names of all topics of the last search, recorded or not.
        seconds: Duration so far [s].
    """

    def __init__(self, live: Live, writer: Any, wanted: list[str]) -> None:
        self.live, self.writer, self.wanted = live, writer, wanted
        self.counts: Counter[str] = Counter()
        self.spans: dict[str, tuple[float, float]] = {}
        self.types: dict[str, str] = {}
        self.seen: list[str] = []
        self.seconds = 0.0
        library = rosbags().typesys
        self._store = library.get_typestore(library.Stores.ROS2_JAZZY)
        self._refused: set[str] = set()

    def run(self, stop: list[int], duration: float | None) -> None:
        """Record until a signal, or for a duration [s].

        `stop` has the numbers of received signals; a handler appends to it.
        """
        started, search = time.monotonic(), 0.0
        end = "Ctrl-C ends" if duration is None else f"{duration:g} s"
        print(f"recording, {end}", flush=True)
        while not stop and (duration is None or self.seconds < duration):
            if time.monotonic() >= search:
                self._search()
                search = time.monotonic() + SEARCH
            self.live.spin()
            self.seconds = time.monotonic() - started

    def _search(self) -> None:
        """Subscribe to new topics that have a publisher and are wanted."""
        node = self.live.node
        topics = node.get_topic_names_and_types()
        self.seen = [topic for topic, _ in topics]
        for topic, kinds in topics:
            unwanted = self.wanted and topic not in self.wanted
            if unwanted or topic in self.types or topic in self._refused:
                continue
            offers = node.get_publishers_info_by_topic(topic)
            if not offers:
                continue  # no publisher yet
            message = _message_class(kinds[0])
            if message is None or kinds[0] not in self._store.fielddefs:
                self._refused.add(topic)
                print(
                    f"dyn record: left out: {topic}, {kinds[0]} is not installed here"
                    " or no message of ROS 2 Jazzy",
                    file=sys.stderr,
                )
                continue
            self._subscribe(topic, kinds[0], message, offers)

    def _subscribe(self, topic: str, kind: str, message: Any, offers: Any) -> None:
        """Record a topic from now on, with the QoS of _quality; print name and type.

        The time of a message in the bag is that of its arrival.
        """
        connection = self.writer.add_connection(topic, kind, typestore=self._store)
        self.types[topic], self.counts[topic] = kind, 0

        def write(data: bytes) -> None:
            self.writer.write(connection, time.time_ns(), data)
            self.counts[topic] += 1
            now = time.monotonic()
            self.spans[topic] = self.spans.get(topic, (now, now))[0], now

        self.live.node.create_subscription(
            message, topic, write, _quality(offers), raw=True
        )
        print(f"  {topic} ({kind})", flush=True)

    def report(self, output: Path) -> int:
        """Print the number of messages by topic, and their rate from first to last.

        Return 1 if nothing came, or nothing on one of the wanted topics, else 0.
        """
        silent = [x for x in self.wanted if not self.counts[x]]
        total = sum(self.counts.values())
        written = "" if total else "; nothing is written"
        print(f"{output}: {total} messages in {self.seconds:.1f} s{written}")
        for topic in sorted(self.types):
            first, last = self.spans.get(topic, (0.0, 0.0))
            gaps = self.counts[topic] - 1  # none where the search for nodes took part
            rate = f"  {gaps / (last - first):.1f} Hz" if last > first else ""
            print(f"  {self.counts[topic]:8}  {topic}{rate}")
        if silent:
            there = ", ".join(sorted(self.types)) or "none"
            others = sorted(set(self.seen) - set(self.wanted))
            near = dict.fromkeys(y for x in silent for y in nearest(x, others, 1))
            guess = f"; did you mean {' or '.join(near)}?" if near else ";"
            print(
                f"dyn record: nothing came on {', '.join(silent)}{guess}"
                f" recorded: {there}",
                file=sys.stderr,
            )
        return int(not total or bool(silent))


def echo(arguments: argparse.Namespace) -> int:
    """Print the messages of a topic as YAML, with a line `---` after each.

    It ends by a signal, or after `count` messages. `timeout` [s] is the longest wait
    for a publisher and a message, after the first one only with `count`.
    """
    topic, count = f"/{arguments.topic.lstrip('/')}", arguments.count
    heard: list[Any] = []
    with noted_signals(*SIGNALS) as stop, connect(arguments.timeout) as live:
        kind, printed = _published(live, topic, stop), 0
        if stop:
            return 0
        message, node = _message_class(kind), live.node
        if message is None:
            raise DynError(f"{topic}: its type {kind} is not installed here")
        quality = _quality(node.get_publishers_info_by_topic(topic))
        node.create_subscription(message, topic, lambda x: heard.append(x), quality)
        while not stop and printed != count:
            wait = live.timeout if count or not printed else math.inf
            what = "" if printed else f"a message on {topic}"
            if not live.until(lambda: heard or stop, wait, what):
                came = f"only {printed} messages" if printed else "nothing"
                raise DynError(f"{came} came on {topic} ({kind}) within {wait:g} s")
            while heard and printed != count:
                content, printed = _plain(heard.pop(0)), printed + 1
                page = yaml.dump(content, sort_keys=False, allow_unicode=True)
                print(f"{page}---", flush=True)
    return 0


def _published(live: Live, topic: str, stop: list[int]) -> str:
    """Return the type of a topic once it has a publisher; "" after a signal."""
    node = live.node

    def topics() -> dict[str, list[str]]:
        """Return the types of the topics with a publisher, by name."""
        pairs = node.get_topic_names_and_types()
        return {name: kinds for name, kinds in pairs if node.count_publishers(name)}

    live.until(
        lambda: stop or topic in topics(),
        live.timeout,
        lambda: f"topic {topic}; there are: {', '.join(topics()) or 'none yet'}",
    )
    there = topics()
    if stop or topic in there:
        return "" if stop else there[topic][0]
    message = unknown_name("topic", topic, there)
    raise SettingError(f"{message} (after {live.timeout:g} s)", "topic")


def _plain(value: Any) -> Any:
    """Return a message or field as dicts, lists and plain values, a byte as number."""
    if hasattr(value, "get_fields_and_field_types"):
        names = value.get_fields_and_field_types()
        return {name: _plain(getattr(value, name)) for name in names}
    if isinstance(value, bytes):
        return value[0]
    if hasattr(value, "tolist"):  # array.array, numpy.ndarray
        return value.tolist()
    return [_plain(x) for x in value] if isinstance(value, (list, tuple)) else value


def _message_class(kind: str) -> Any:
    """Return the class of a type such as std_msgs/msg/String; None if not installed."""
    package, _, name = kind.partition("/msg/")
    try:
        return getattr(importlib.import_module(f"{package}.msg"), name, None)
    except ImportError:
        return None


def _quality(offers: Any) -> QoSProfile:
    """Return the strictest QoS that all publishers offer, with a queue of DEPTH."""
    profiles, R, D = (
        [x.qos_profile for x in offers],
        ReliabilityPolicy,
        DurabilityPolicy,
    )
    reliable = all(x.reliability == R.RELIABLE for x in profiles)
    latched = all(x.durability == D.TRANSIENT_LOCAL for x in profiles)
    return QoSProfile(
        depth=DEPTH,
        reliability=R.RELIABLE if reliable else R.BEST_EFFORT,
        durability=D.TRANSIENT_LOCAL if latched else D.VOLATILE,
    )
