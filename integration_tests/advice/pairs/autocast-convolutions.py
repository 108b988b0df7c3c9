from programs import MENDED, ConvNet, images, train

train(ConvNet(), images(32), half=MENDED)
