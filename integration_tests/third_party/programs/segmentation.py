"""Segmentation: a U-Net of segmentation_models_pytorch, MONAI or torchvision, with its package's loss and metric.

    segmentation.py smp|monai|torchvision
"""
import sys

import torch
from counted import counted

kind = sys.argv[1]
if kind == "smp":
    import segmentation_models_pytorch as smp
    model, lose = smp.Unet("resnet34", encoder_weights=None, classes=4), smp.losses.DiceLoss("multiclass")
    channels = 3
elif kind == "monai":
    import monai
    model = monai.networks.nets.UNet(2, 1, 4, channels=(16, 32, 64, 128), strides=(2, 2, 2), num_res_units=2)
    dice = monai.losses.DiceCELoss(to_onehot_y=True, softmax=True)
    lose, channels = lambda out, target: dice(out, target[:, None]), 1
else:
    import torchvision
    whole = torchvision.models.segmentation.deeplabv3_resnet50(weights=None, weights_backbone=None, num_classes=4)
    model, channels = whole, 3
    lose = lambda out, target: torch.nn.functional.cross_entropy(out["out"], target)  # noqa: E731
model = model.cuda().train()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
for i in range(5):
    image, target = torch.randn(4, channels, 128, 128).cuda(), torch.randint(4, (4, 128, 128)).cuda()
    with counted(i):
        loss = lose(model(image), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if not torch.isfinite(loss):
        sys.exit("loss is not finite")
    with torch.no_grad():
        out = model(image)
        out = out["out"] if isinstance(out, dict) else out
        print("overlap", (out.argmax(1) == target).float().mean().item())
