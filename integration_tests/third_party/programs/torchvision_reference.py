"""A classifier as torchvision's references train it: label smoothing, mixup by collate, SGD with Nesterov's momentum, a
learning rate that warms up, autocast with a scaler, an average of the weights, validation.

    torchvision_reference.py MODEL [BATCH]
"""
import math
import sys

import torch
import torchvision
from counted import counted
from torchvision.transforms import v2

name, batch = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 32
images = torchvision.datasets.FakeData(4 * batch, (3, 224, 224), 1000, v2.Compose(
    [v2.PILToTensor(), v2.RandomHorizontalFlip(), v2.ToDtype(torch.float32, scale=True)]))
mixup = v2.MixUp(num_classes=1000, alpha=0.2)
loader = torch.utils.data.DataLoader(
    images, batch_size=batch, shuffle=True, drop_last=True, pin_memory=True,
    collate_fn=lambda rows: mixup(*torch.utils.data.default_collate(rows)))
model = torchvision.models.get_model(name, weights=None, num_classes=1000).cuda()
criterion = torch.nn.CrossEntropyLoss(label_smoothing=0.1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9, weight_decay=2e-5, nesterov=True)
schedule = torch.optim.lr_scheduler.SequentialLR(optimizer, [
    torch.optim.lr_scheduler.LinearLR(optimizer, 0.01, total_iters=2),
    torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)], milestones=[2])
average = torch.optim.swa_utils.AveragedModel(model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.99))
scaler = torch.amp.GradScaler("cuda")
model.train()
for i, (image, target) in enumerate(loader):
    image, target = image.cuda(non_blocking=True), target.cuda(non_blocking=True)
    with counted(i):
        with torch.amp.autocast("cuda"):
            output = model(image)
            loss = criterion(output, target)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        average.update_parameters(model)
    schedule.step()
    if not math.isfinite(loss.item()):
        sys.exit("loss is not finite")
average.eval()
with torch.inference_mode():
    for image, target in loader:
        top = average(image.cuda()).topk(5, 1).indices
        print("acc5", top.eq(target.argmax(1).cuda()[:, None]).any(1).float().mean().item())
        break
print("scale", scaler.get_scale())
