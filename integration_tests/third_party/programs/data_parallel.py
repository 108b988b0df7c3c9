"""nn.DataParallel over the devices that are there."""
import torch
import torchvision

model = torch.nn.DataParallel(torchvision.models.resnet18(num_classes=10).cuda())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for _ in range(4):
    loss = torch.nn.functional.cross_entropy(model(torch.randn(16, 3, 64, 64).cuda()), torch.randint(10, (16,)).cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("devices", torch.cuda.device_count())
