"""A classifier by timm's ways: create_model, Mixup with soft targets, create_optimizer_v2, ModelEmaV3, NativeScaler.

    timm_train.py MODEL [BATCH]
"""
import sys

import timm
import timm.data
import timm.loss
import timm.optim
import timm.scheduler
import timm.utils
import torch
from counted import counted

name, batch = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 32
model = timm.create_model(name, pretrained=False, num_classes=1000, drop_path_rate=0.1).cuda()
size = timm.data.resolve_data_config({}, model=model)["input_size"]
mixup = timm.data.Mixup(mixup_alpha=0.8, cutmix_alpha=1.0, label_smoothing=0.1, num_classes=1000)
optimizer = timm.optim.create_optimizer_v2(model, opt="adamw", lr=1e-3, weight_decay=0.05)
schedule, _ = timm.scheduler.create_scheduler_v2(optimizer, num_epochs=5)
ema = timm.utils.ModelEmaV3(model, decay=0.999)
scaler = timm.utils.NativeScaler()
criterion = timm.loss.SoftTargetCrossEntropy()
losses = timm.utils.AverageMeter()
model.train()
for i in range(5):
    image, target = torch.randn(batch, *size).cuda(), torch.randint(1000, (batch,)).cuda()
    with counted(i):
        image, target = mixup(image, target)
        with torch.autocast("cuda", torch.float16):
            loss = criterion(model(image), target)
        optimizer.zero_grad()
        scaler(loss, optimizer, clip_grad=1.0, parameters=model.parameters())
        ema.update(model, step=i)
    losses.update(loss.item(), batch)
    schedule.step_update(i)
print("loss", losses.avg)
