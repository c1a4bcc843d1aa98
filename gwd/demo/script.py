"""Which behaviour a call gets: what a test queued, else what the prompt asks for."""

from collections import Counter, deque

from gwd.demo.behaviour import HONEST, Behaviour, parse


class Script:
    """Behaviours waiting for calls.

    Looked up in this order: the queue of the call's model, the queue for any model, the standing behaviour of the
    model, the standing behaviour for any model, the words the call carries. A queued behaviour is used once.
    """

    def __init__(self) -> None:
        self._queues: dict[str | None, deque[Behaviour]] = {}
        self._standing: dict[str | None, Behaviour] = {}
        self._used: Counter[str] = Counter()

    def next(self, *behaviours: Behaviour | str, model: str | None = None) -> None:
        """Queue behaviours for the calls to come (of one model); a text is read as in a prompt."""
        queue = self._queues.setdefault(model, deque())
        queue.extend(_as_behaviour(one) for one in behaviours)

    def always(self, behaviour: Behaviour | str, *, model: str | None = None) -> None:
        """From now on, where nothing is queued."""
        self._standing[model] = _as_behaviour(behaviour)

    def clear(self) -> None:
        """Forget everything queued or standing."""
        self._queues.clear()
        self._standing.clear()
        self._used.clear()

    def take(self, model: str, words: str | None) -> Behaviour:
        """The behaviour of one call. Raises BehaviourError when the call's own words make no sense."""
        for key in (model, None):
            if queue := self._queues.get(key):
                return queue.popleft()
        for key in (model, None):
            if (standing := self._standing.get(key)) is not None:
                return standing
        return self._asked_for(model, words) if words else HONEST

    def _asked_for(self, model: str, words: str) -> Behaviour:
        behaviour = parse(words)
        if behaviour.only_model not in (None, model):
            return HONEST
        if behaviour.times is not None:
            self._used[words] += 1
            if self._used[words] > behaviour.times:
                return HONEST
        return behaviour


def _as_behaviour(one: Behaviour | str) -> Behaviour:
    return parse(one) if isinstance(one, str) else one
