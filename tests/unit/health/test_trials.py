"""One call at a time is on trial; whoever leaves, fails or waits too long leaves nothing behind."""

import asyncio
import random

from gwd.health.trials import Key, Trials

A: Key = ("ep_1", "pk_1")
OWN: Key = ("", "pk_1")


async def test_after_a_failure_the_first_is_woken_and_after_a_success_all() -> None:
    trials, holder = Trials(), object()
    woken: list[int] = []

    async def waiting(number: int) -> None:
        await trials.wait([A, OWN], 30)
        woken.append(number)

    trials.take([A], holder)
    tasks = [asyncio.create_task(waiting(number)) for number in range(4)]
    await asyncio.sleep(0)
    trials.release([A], holder, is_over=False)
    await asyncio.sleep(0.01)
    assert woken == [0]
    trials.take([A, OWN], holder)
    trials.release([A, OWN], holder, is_over=True)
    await asyncio.gather(*tasks)
    assert woken == [0, 1, 2, 3]
    assert (trials._held, trials._waiting) == ({}, {})


async def test_a_wait_has_an_end() -> None:
    trials, holder = Trials(), object()
    trials.take([A], holder)
    await trials.wait([A], 0.01)
    assert trials.is_any_held(A)
    assert trials._waiting == {}


async def test_who_lost_the_trial_cannot_end_that_of_another() -> None:
    trials, slow, impatient = Trials(), object(), object()
    trials.take([A], slow)
    trials.take([A], impatient)
    trials.release([A], slow, is_over=True)
    assert trials.is_any_held(A)
    trials.release([A], impatient, is_over=False)
    assert not trials.are_any


async def test_whatever_becomes_of_the_calls_one_is_on_trial_and_everybody_ends() -> None:
    rng = random.Random(7)
    trials = Trials()
    on_trial: set[object] = set()
    most = served = 0

    async def call() -> None:
        nonlocal most, served
        holder, keys = object(), rng.choice(([A], [OWN], [A, OWN]))
        while trials.is_any_held(A, OWN):
            await trials.wait([A, OWN], 0.05)
        trials.take(keys, holder)
        on_trial.add(holder)
        most = max(most, len(on_trial))
        try:
            await asyncio.sleep(rng.random() / 500)
            served += 1
        finally:
            on_trial.remove(holder)
            trials.release(keys, holder, is_over=False)

    tasks = [asyncio.create_task(call()) for _ in range(300)]
    await asyncio.sleep(0.05)
    for task in rng.sample(tasks, 150):
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert most == 1
    assert served >= 150
    assert (trials._held, trials._waiting) == ({}, {})
