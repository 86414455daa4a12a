"""The poll schedule as a library: a pure fold over the polls of one document, and the price for a population."""

from monitor.core.schedule import decide, observe
from monitor.core.schedule_bounds import overflow_horizon
from monitor.core.schedule_population import USUAL, Population, population
from monitor.core.schedule_price import Demand, Outlook, demand, outlook, price_for
from monitor.core.schedule_state import Bound, Decision, Hints, Policy, Poll, State, dumps, loads, start, with_policy

__all__ = [
    "USUAL",
    "Bound",
    "Decision",
    "Demand",
    "Hints",
    "Outlook",
    "Policy",
    "Poll",
    "Population",
    "State",
    "decide",
    "demand",
    "dumps",
    "loads",
    "observe",
    "outlook",
    "overflow_horizon",
    "population",
    "price_for",
    "start",
    "with_policy",
]
