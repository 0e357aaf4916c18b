"""Somebody's own data: product titles, and categories whose names hold commas, as a shop's export might have them."""

from __future__ import annotations

import csv
import random

CATEGORIES = {
    "Home, kitchen & dining": "kettle saucepan ladle teapot colander whisk",
    "Garden, patio": "rake hose planter trowel wheelbarrow hedge",
    "Cables, adapters": "usb hdmi adapter charger plug ethernet",
    "Toys, games": "puzzle doll dice robot kite marbles",
    "Books, magazines": "novel atlas comic diary biography almanac",
    "Pets, animals": "leash aquarium litter kennel birdcage hamster",
    "Bags, luggage": "suitcase backpack tote duffel wallet briefcase",
    "Shoes, boots": "sandal sneaker heel loafer slipper clog",
    "Music, instruments": "guitar violin drum flute trumpet harmonica",
    "Tools, hardware": "hammer wrench drill screwdriver pliers chisel",
    "Bath, body": "soap shampoo towel loofah lotion perfume",
    "Sport, outdoors": "tent racket helmet dumbbell kayak compass",
}
QUALITIES = ["red", "large", "modern", "classic", "light", "robust", "small", "green", "new", "vintage", "folding"]


def product(rng: random.Random) -> tuple[str, list[str]]:
    """A title that shows its one or two categories by two things each, and says other things, too."""
    categories = rng.sample(sorted(CATEGORIES), rng.choice([1, 1, 2]))
    words = [word for name in categories for word in rng.sample(CATEGORIES[name].split(), 2)]
    words += rng.sample(QUALITIES, 2)
    rng.shuffle(words)
    return " ".join(words).capitalize(), categories


def write_shop(path, size, seed=0):
    """A CSV with `size` products; gives the rows."""
    rng = random.Random(seed)
    rows = [product(rng) for _ in range(size)]
    with path.open("w", encoding="utf-8", newline="") as stream:
        table = csv.writer(stream)
        table.writerow(["sku", "text", "price", "labels"])
        for number, (text, labels) in enumerate(rows):
            table.writerow([f"S{number:05}", text, rng.randint(1, 99), ";".join(labels)])
    return rows


QUICK = ["--preset", "static-cpu", "--set", "training.epochs=2", "--set", "training.threads=1"]
