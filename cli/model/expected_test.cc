#include "cli/model/expected.h"
