"""Windows, rolling features and a whole array, on a pandas frame."""

import numpy as np
import pandas as pd

from sash import agg, rolling, slide, windows


def made_up_trips(n: int = 10_000) -> pd.DataFrame:
    """Trips of three zones over a day, in no particular order."""
    random = np.random.default_rng(7)
    at = pd.to_datetime("2024-03-01") + pd.to_timedelta(random.integers(0, 86_400, n), unit="s")
    return pd.DataFrame({"at": at, "zone": random.choice(["north", "south", "harbour"], n), "fare": random.gamma(4, 3, n).round(2)})


def main() -> None:
    trips = made_up_trips()

    print("Windows of an hour, one every ten minutes: the three with the most trips")
    aggs = {"trips": agg.count(), "fare": agg.mean("fare"), "p90": agg.quantile("fare", 0.9)}
    hourly = windows(trips, time="at", key="zone", range="1h", slide="10m", aggs=aggs)
    print(hourly.nlargest(3, "trips")[["zone", "window_start", "trips", "fare", "p90"]].to_string(index=False), "\n")

    print("Features of each trip: what its zone did in the last ten minutes and six hours")
    features = rolling(trips, time="at", key="zone", lookbacks=["10m", "6h"], aggs={"sum": agg.sum("fare"), "n": agg.count()})
    print(features.head(3).to_string(index=False), "\n")

    print("A whole array: the median of the last 1,000 fares, and the largest of the last 1,000")
    fares = trips["fare"].to_numpy()
    print(slide(fares, agg=agg.median(), size=1_000)[-3:], slide(fares, agg=agg.max(), size=1_000)[-3:])


if __name__ == "__main__":
    main()
