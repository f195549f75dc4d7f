"""A training set: every label gets the features as they were just before it, and a check that nothing newer leaked in."""

import numpy as np
import pandas as pd

from sash import agg, rolling

FEATURES = {
    "time": "at",
    "key": "card",
    "lookbacks": ["1h", "24h"],
    "aggs": {"n": agg.count(), "spent": agg.sum("amount"), "most": agg.max("amount"), "shops": agg.distinct("shop")},
}


def made_up(n: int = 5_000, labels: int = 200) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Payments of fifty cards, and labels at the times of some of them."""
    random = np.random.default_rng(11)
    at = pd.to_datetime("2024-03-01") + pd.to_timedelta(random.integers(0, 3 * 86_400, n), unit="s")
    payments = pd.DataFrame(
        {"at": at, "card": random.integers(0, 50, n), "amount": random.integers(1, 500, n), "shop": random.integers(0, 9, n)}
    )
    chosen = payments.sample(labels, random_state=3)
    fraud = random.random(labels) < 0.1
    return payments, pd.DataFrame({"when": chosen["at"].to_numpy(), "card": chosen["card"].to_numpy(), "fraud": fraud})


def main() -> None:
    payments, labels = made_up()
    training = rolling(payments, at=labels, at_time="when", **FEATURES)
    print(training.head(3).to_string(index=False))

    # The proof: without every payment from a label's time on, its features are the same.
    for row in range(0, len(labels), 40):
        past = payments[payments["at"] < labels["when"].iloc[row]]
        alone = rolling(past, at=labels.iloc[[row]], at_time="when", **FEATURES)
        pd.testing.assert_frame_equal(alone.reset_index(drop=True), training.iloc[[row]].reset_index(drop=True), check_dtype=False)
    print("nothing from a label's time on is in its features")


if __name__ == "__main__":
    main()
