"""Ultralytics' YOLO from its configuration, trained on images that are made here.

    yolo.py CONFIGURATION
"""
import os
import pathlib
import random
import sys
import tempfile

folder = pathlib.Path(tempfile.mkdtemp(prefix="rfinject-yolo-"))
os.environ["YOLO_CONFIG_DIR"] = str(folder)
import ultralytics  # noqa: E402
from PIL import Image  # noqa: E402

chance = random.Random(0)
for part in ("train", "val"):
    for kind in ("images", "labels"):
        (folder / kind / part).mkdir(parents=True)
    for i in range(32 if part == "train" else 8):
        Image.effect_noise((160, 160), 64).convert("RGB").save(folder / "images" / part / f"{i}.jpg")
        boxes = [f"{chance.randrange(3)} {chance.uniform(.3, .7)} {chance.uniform(.3, .7)} .3 .3" for _ in range(3)]
        (folder / "labels" / part / f"{i}.txt").write_text("\n".join(boxes))
(folder / "data.yaml").write_text(f"path: {folder}\ntrain: images/train\nval: images/val\nnames: [a, b, c]\n")
model = ultralytics.YOLO(sys.argv[1])
model.train(data=str(folder / "data.yaml"), epochs=1, batch=8, imgsz=160, workers=0, device=0, plots=False, amp=False,
            project=str(folder), verbose=False, val=True)
print("trained")
