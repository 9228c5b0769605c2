"""Work that is split three to one between two functions: time on and off the processor."""

import sys
import threading
import time


def spin(n):
    x = 1
    for _ in range(n):
        x = (x * 1103515245 + 12345) & 0x7FFFFFFF
    return x


def three():
    return spin(300_000)


def one():
    return spin(100_000)


def nap_three():
    time.sleep(0.075)


def nap_one():
    time.sleep(0.025)


def repeat(*turns):
    def run():
        while True:
            for turn in turns:
                turn()

    threading.Thread(target=run, daemon=True).start()


repeat(three, one)
repeat(nap_three, nap_one)
print("ready", flush=True)
sys.stdin.read()  # until the test ends
