"""Mixed precision with a scaler, channels_last, a fused optimizer and cudnn.benchmark."""
import torch
import torchvision

torch.backends.cudnn.benchmark = True
model = torchvision.models.resnet18().cuda().to(memory_format=torch.channels_last)
optimizer = torch.optim.AdamW(model.parameters(), fused=True)
scaler = torch.cuda.amp.GradScaler()
images, labels = torch.zeros(4, 3, 64, 64).cuda(), torch.zeros(4, dtype=torch.int64).cuda()
for _ in range(3):
    with torch.autocast("cuda"):
        loss = torch.nn.functional.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
print("amp ok")
