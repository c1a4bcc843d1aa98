"""The memory of emitted items: an hour, one key, a bounded number of bytes."""

from gwd.replay.items import HELD_S, InMemoryItems

ITEM = b'{"type":"message","id":"msg_1"}'


class StepClock:
    """Monotonic seconds that a test moves on."""

    def __init__(self) -> None:
        self.now_s = 1_000.0

    def now_us(self) -> int:
        return 0

    def monotonic_s(self) -> float:
        return self.now_s


def test_an_item_is_recalled_for_an_hour():
    clock = StepClock()
    memory = InMemoryItems(clock)
    memory.remember("key_a", {"msg_1": ITEM})
    clock.now_s += HELD_S - 1
    assert memory.recall("key_a", "msg_1") == b'{"type":"message","id":"msg_1"}'
    clock.now_s += 1
    assert memory.recall("key_a", "msg_1") is None


def test_a_key_never_sees_the_items_of_another():
    memory = InMemoryItems(StepClock())
    memory.remember("key_a", {"msg_1": ITEM})
    assert memory.recall("key_b", "msg_1") is None


def test_the_oldest_items_make_room():
    memory = InMemoryItems(StepClock(), max_bytes=2 * len(ITEM))
    memory.remember("key_a", {"msg_1": ITEM, "msg_2": ITEM, "msg_3": ITEM})
    assert memory.recall("key_a", "msg_1") is None
    assert memory.recall("key_a", "msg_3") is not None


def test_an_item_told_again_is_new_again():
    clock = StepClock()
    memory = InMemoryItems(clock, max_bytes=2 * len(ITEM))
    memory.remember("key_a", {"msg_1": ITEM, "msg_2": ITEM})
    memory.remember("key_a", {"msg_1": ITEM})
    memory.remember("key_a", {"msg_3": ITEM})
    assert memory.recall("key_a", "msg_2") is None
    assert memory.recall("key_a", "msg_1") is not None


def test_stale_items_give_their_room_back():
    clock = StepClock()
    memory = InMemoryItems(clock, max_bytes=2 * len(ITEM))
    memory.remember("key_a", {"msg_1": ITEM, "msg_2": ITEM})
    clock.now_s += HELD_S
    memory.remember("key_a", {"msg_3": ITEM, "msg_4": ITEM})
    assert memory.recall("key_a", "msg_3") is not None
    assert memory.recall("key_a", "msg_4") is not None


def test_a_giant_item_is_not_held():
    memory = InMemoryItems(StepClock(), max_bytes=10)
    memory.remember("key_a", {"msg_1": b'"' + b"x" * 2_000_000 + b'"'})
    assert memory.recall("key_a", "msg_1") is None
