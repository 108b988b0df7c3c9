#!/usr/bin/env python3
"""What runs where: every operator of real programs on real torch, asked through the test harness.

Cases are named after the designs that they break. Run by ctest with Debian's torch; by hand with any other:
    RFINJECT_TORCH_HARNESS=… python3 torch_test.py          (RFINJECT_TIER=B forces the fallback without current node)
"""

import collections
import ctypes
import os
import sys
import threading
import unittest

try:
    import torch
except ImportError:
    sys.exit(77)  # skipped
from torch import nn
from torch.utils.checkpoint import checkpoint

import torch_binding as binding
from torch_binding import layer

TIER = os.environ.get('RFINJECT_TIER', '')
VERSION = tuple(int(x) for x in torch.__version__.split('+')[0].split('a')[0].split('.')[:2])


def phases(ops, name=None):
    """{(phase, layer): count} of the operators called `name`."""
    return dict(collections.Counter((op.phase, op.layer) for op in ops if name is None or op.name == name))


def orphans(ops):
    return [op for op in ops if op.layer == '-' and op.phase in ('forward', 'backward', 'recompute')]


def setUpModule():
    state = (torch.get_rng_state(), torch.is_grad_enabled(), set(sys.modules), len(os.listdir('/proc/self/task')))
    setUpModule.words, setUpModule.missing = binding.bind()
    after = (torch.get_rng_state(), torch.is_grad_enabled(), set(sys.modules), len(os.listdir('/proc/self/task')))
    setUpModule.unchanged = (torch.equal(state[0], after[0]) and state[1:] == after[1:] and
                             not torch.cuda.is_initialized())
    binding.watch_modules()


class TorchTest(unittest.TestCase):

    def setUp(self):
        torch.manual_seed(0)
        binding.take()
        binding.diagnostics()

    def tearDown(self):
        self.assertEqual(binding.diagnostics(), '')
        self.assertEqual(binding.site(), ('other', '-', '-', '-'))


class BindingTest(TorchTest):

    def test_capabilities(self):
        expected = {'record_function', 'sequence', 'operands', 'backward_scope'}
        if TIER != 'B':
            expected.add('current_node')
        self.assertEqual(setUpModule.words, expected, setUpModule.missing)

    def test_the_program_does_not_notice(self):
        self.assertTrue(setUpModule.unchanged)

    def test_symbols_are_not_global(self):
        # The functions that the library has bound to cannot be found by dlsym(RTLD_DEFAULT).
        import ctypes
        with self.assertRaises(AttributeError):
            ctypes.CDLL(None)._ZN2at15sequence_number4peekEv

    def test_fork_after_binding_can_still_run_backward(self):
        # The engine's threads are per process: a calibration that started the engine would break this.
        child = os.fork()
        if child == 0:
            try:
                x = torch.ones(2, requires_grad=True)
                (x * 2).sum().backward()
                os._exit(0 if x.grad.tolist() == [2, 2] else 1)
            except BaseException:
                os._exit(2)
        self.assertEqual(os.waitpid(child, 0)[1], 0)


class OperandTest(TorchTest):

    def lines(self, name):
        return [(op.inputs, op.outputs) for op in binding.take() if op.name == name]

    def test_tensors_scalars_and_views(self):
        a, b = torch.zeros(2, 3), torch.zeros(3).expand(2, 3)
        binding.take()
        torch.add(a, b, alpha=2)
        self.assertEqual(self.lines('aten::add'), [('f32[2,3];f32[2,3]/3;2;', 'f32[2,3];')])
        x = torch.zeros(2, 2, 2, 2, 2, 2, 3, dtype=torch.float64)
        binding.take()
        x.mul_(0.5)  # a Python scalar is a tensor without dimensions here
        self.assertEqual(self.lines('aten::mul_'), [('f64[2,2,2,2,2,2,3];f64[];', 'f64[2,2,2,2,2,2,3];')])

    def test_rank_above_eight_folds_the_last(self):
        torch.zeros(2, 2, 2, 2, 2, 2, 2, 2, 3).neg()
        self.assertEqual(self.lines('aten::neg'), [('f32[2,2,2,2,2,2,2,6];', 'f32[2,2,2,2,2,2,2,6];')])

    def test_lists(self):
        torch.cat((torch.zeros(1, 2), torch.zeros(3, 2, dtype=torch.float32)), 0)
        self.assertEqual(self.lines('aten::cat'), [('(f32[1,2] f32[3,2]);0;', 'f32[4,2];')])

    def test_half_and_integers(self):
        x = torch.zeros(4, 4, dtype=torch.bfloat16)
        binding.take()
        x.sum((0, 1), keepdim=True)
        self.assertEqual(self.lines('aten::sum'), [('bf16[4,4];{0,1};True;None;', 'bf16[1,1];')])

    def test_depthwise_convolution_backward(self):
        # The operands have all that the theory needs: groups, and which gradients are wanted.
        x, w = torch.zeros(2, 8, 6, 6), torch.zeros(8, 1, 3, 3, requires_grad=True)
        nn.functional.conv2d(x, w, None, 1, 1, 1, 8).sum().backward()
        ops = binding.take()
        forward = [op for op in ops if op.name == 'aten::convolution']
        backward = [op for op in ops if op.name == 'aten::convolution_backward']
        self.assertEqual(forward[0].inputs, 'f32[2,8,6,6];f32[8,1,3,3];None;{1,1};{1,1};{1,1};False;{0,0};8;')
        self.assertTrue(backward[0].inputs.endswith('{1,1};{1,1};{1,1};False;{0,0};8;{0,1,0};'), backward)
        self.assertEqual(backward[0].outputs, 'None;f32[8,1,3,3];None;')
        self.assertEqual([op.op for op in forward], ['aten::convolution'])
        self.assertFalse([op for op in ops if op.name in ('aten::conv2d', 'aten::_convolution')])

    def test_an_operator_that_throws_leaves_the_stack_balanced(self):
        for _ in range(50):
            with self.assertRaises(RuntimeError):
                torch.mm(torch.zeros(2, 3), torch.zeros(2, 3))
            with self.assertRaises(RuntimeError):
                torch.einsum('ij,jk->ik', torch.zeros(2, 3), torch.zeros(2, 3))
        self.assertEqual([op for op in binding.take() if op.name in ('aten::mm', 'aten::bmm', 'aten::einsum')], [])
        torch.mm(torch.zeros(2, 3), torch.zeros(3, 4))
        self.assertEqual(self.lines('aten::mm'), [('f32[2,3];f32[3,4];', 'f32[2,4];')])

    def test_meta_tensors_compute_nothing(self):
        torch.mm(torch.empty(2, 3, device='meta'), torch.empty(3, 4, device='meta'))
        self.assertEqual(binding.take(), [])

    def test_fake_tensors_compute_nothing(self):
        if VERSION < (2, 0):
            self.skipTest('torch 1.13 has no public FakeTensorMode')
        from torch._subclasses.fake_tensor import FakeTensorMode
        binding.take()
        with FakeTensorMode():
            torch.mm(torch.zeros(2, 3), torch.ones(3, 4)).relu()
        self.assertEqual([op.name for op in binding.take()], [])

    def test_vmap_is_transparent(self):
        if VERSION < (2, 0):
            self.skipTest('torch.func came with 2.0')
        x = torch.zeros(5, 2, 3)
        y = torch.zeros(5, 3, 4)
        binding.take()
        torch.func.vmap(torch.mm)(x, y)
        self.assertEqual(self.lines('aten::bmm'), [('f32[5,2,3];f32[5,3,4];', 'f32[5,2,4];')])

    def test_subclass_is_transparent(self):
        from torch.utils._pytree import tree_map

        class Wrapper(torch.Tensor):

            @staticmethod
            def __new__(cls, inner):
                result = torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)
                result.inner = inner
                return result

            @classmethod
            def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
                unwrap = lambda t: t.inner if isinstance(t, Wrapper) else t
                return Wrapper(func(*tree_map(unwrap, args), **tree_map(unwrap, kwargs or {})))

        x = Wrapper(torch.zeros(2, 3))
        y = Wrapper(torch.zeros(3, 4))
        binding.take()
        torch.mm(x, y)
        self.assertEqual(self.lines('aten::mm'), [('f32[2,3];f32[3,4];', 'f32[2,4];')])


class Block(nn.Module):

    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4)
        self.b = nn.Linear(4, 4)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        y = self.relu(self.a(x))
        y = self.b(y)
        y += x
        return self.relu(y)


class AttributionTest(TorchTest):

    def train(self, model, x, backward=lambda loss: loss.backward()):
        criterion = nn.MSELoss()
        binding.name_modules(model=model, loss=criterion)
        binding.take()
        loss = criterion(model(x), torch.zeros(3, 4))
        backward(loss)
        return binding.take()

    def test_every_operator_has_its_layer(self):
        # Full backward hooks would break on an in-place ReLU; and the relu is used twice.
        ops = self.train(Block(), torch.randn(3, 4, requires_grad=True))
        self.assertEqual(orphans(ops), [])
        self.assertEqual(phases(ops, 'aten::addmm'), {('forward', 'model.a'): 1, ('forward', 'model.b'): 1})
        self.assertEqual(phases(ops, 'aten::mm'), {('backward', 'model.a'): 2, ('backward', 'model.b'): 2})
        self.assertEqual(phases(ops, 'aten::threshold_backward'), {('backward', 'model.relu'): 2})
        self.assertEqual(phases(ops, 'aten::add_')[('forward', 'model')], 1)

    def test_nodes_have_names(self):
        ops = self.train(Block(), torch.randn(3, 4))
        self.assertEqual({op.node for op in ops if op.name == 'aten::mm'}, {'AddmmBackward0'})
        self.assertEqual({op.node for op in ops if op.phase == 'forward'}, {'-'})

    def test_gradients_that_meet(self):
        # The residual's two gradients are added after the node of one branch has returned.
        ops = self.train(Block(), torch.randn(3, 4, requires_grad=True))
        adds = [op for op in ops if op.phase == 'backward' and op.name in ('aten::add', 'aten::add_')]
        self.assertEqual(len(adds), 1)
        self.assertNotEqual(adds[0].layer, '-')

    def test_accumulation_belongs_to_the_layer_of_the_parameter(self):
        model = Block()
        for parameter in model.parameters():
            parameter.grad = torch.ones_like(parameter)
        ops = self.train(model, torch.randn(3, 4))
        accumulated = [op for op in ops if op.node == 'AccumulateGrad']
        self.assertEqual(phases(accumulated), {('backward', 'model.a'): 2, ('backward', 'model.b'): 2})

    def test_tied_weights(self):
        model = Block()
        model.b.weight = model.a.weight
        ops = self.train(model, torch.randn(3, 4))
        self.assertEqual(orphans(ops), [])
        self.assertEqual(phases(ops, 'aten::mm'), {('backward', 'model.a'): 1, ('backward', 'model.b'): 2})

    def test_several_backwards_and_accumulation(self):
        # Several losses of one model have a backward each, and gradients accumulate.
        model, criterion = Block(), nn.MSELoss()
        binding.name_modules(model=model, loss=criterion)
        losses = [criterion(model(torch.randn(3, 4)), torch.zeros(3, 4)) for _ in range(3)]
        binding.take()
        losses[0].backward(retain_graph=True)
        once = phases(binding.take(), 'aten::mm')
        losses[0].backward(retain_graph=True)
        self.assertEqual(phases(binding.take(), 'aten::mm'), once)
        (losses[2] + losses[1]).backward()
        ops = binding.take()
        self.assertEqual(phases(ops, 'aten::mm'), {key: 2 * count for key, count in once.items()})
        # The sum of the losses was made outside of every module.
        self.assertEqual({op.node for op in orphans(ops)} - {'AddBackward0'}, set())

    def test_functional_loss_has_phase_but_no_layer(self):
        model = Block()
        binding.name_modules(model=model)
        binding.take()
        nn.functional.mse_loss(model(torch.randn(3, 4)), torch.zeros(3, 4)).backward()
        ops = binding.take()
        self.assertEqual(phases(ops, 'aten::mse_loss'), {('other', '-'): 1})
        self.assertEqual(phases(ops, 'aten::mse_loss_backward'), {('backward', '-'): 1})
        self.assertEqual({op.name for op in orphans(ops)} - {'aten::mse_loss_backward', 'aten::zeros_like',
                                                             'aten::zeros', 'aten::zero_', 'aten::fill_'}, set())

    def test_no_grad_is_forward(self):
        # A forward without gradients makes no nodes.
        model = Block()
        binding.name_modules(model=model)
        binding.take()
        with torch.no_grad():
            model(torch.randn(3, 4))
        self.assertEqual(phases(binding.take(), 'aten::addmm'), {('forward', 'model.a'): 1, ('forward', 'model.b'): 1})

    def test_three_threads_with_equal_sequence_numbers(self):
        # The forwards run in threads whose counters agree; the backward runs here.
        models = [nn.Linear(4, 4) for _ in range(3)]
        binding.name_modules(**{'m%d' % i: m for i, m in enumerate(models)})
        outputs = [None] * 3
        barrier = threading.Barrier(3)

        def forward(i):
            barrier.wait()
            outputs[i] = models[i](torch.randn(2, 4))

        threads = [threading.Thread(target=forward, args=(i,)) for i in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        binding.take()
        for i in (2, 0, 1):
            outputs[i].sum().backward()
            self.assertEqual(phases(binding.take(), 'aten::mm'), {('backward', 'm%d' % i): 1})

    def test_backward_inside_a_forward(self):
        class Inner(nn.Module):

            def __init__(self):
                super().__init__()
                self.a = nn.Linear(4, 4)

            def forward(self, x):
                with torch.enable_grad():
                    self.a(x).sum().backward()
                return self.a(x)

        model = Inner()
        binding.name_modules(model=model)
        binding.take()
        model(torch.randn(2, 4))
        ops = binding.take()
        self.assertEqual(phases(ops, 'aten::mm'), {('backward', 'model.a'): 1})
        self.assertEqual(phases(ops, 'aten::addmm'), {('forward', 'model.a'): 2})

    def check_checkpoint(self, reentrant):
        # Recomputed forwards are a phase of their own, and their nodes have owners.
        model = Block()
        criterion = nn.MSELoss()
        binding.name_modules(model=model, loss=criterion)
        x = torch.randn(3, 4, requires_grad=True)
        binding.take()
        arguments = {'use_reentrant': reentrant}
        loss = criterion(checkpoint(model, x, **arguments), torch.zeros(3, 4))
        loss.backward()
        ops = binding.take()
        self.assertEqual(orphans(ops), [])
        self.assertEqual(phases(ops, 'aten::addmm'), {
            ('forward', 'model.a'): 1, ('forward', 'model.b'): 1,
            ('recompute', 'model.a'): 1, ('recompute', 'model.b'): 1})
        self.assertEqual(phases(ops, 'aten::mm'), {('backward', 'model.a'): 2, ('backward', 'model.b'): 2})

    def test_reentrant_checkpoint(self):
        self.check_checkpoint(True)

    def test_checkpoint_without_reentrance(self):
        self.check_checkpoint(False)

    def test_double_backward(self):
        # Nodes born in the backward belong to the layer whose node bore them.
        model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4))
        binding.name_modules(model=model)
        x = torch.randn(3, 4, requires_grad=True)
        y = model(x)
        gradient, = torch.autograd.grad(y, x, torch.ones_like(y), create_graph=True)
        binding.take()
        gradient.backward(torch.ones_like(gradient))
        ops = binding.take()
        self.assertEqual(orphans(ops), [])
        self.assertEqual({op.layer for op in ops if op.name == 'aten::mm'}, {'model.0', 'model.2'})
        self.assertEqual({op.layer for op in ops if op.node == 'TanhBackwardBackward0'}, {'model.1'})

    def test_what_follows_a_double_backward_is_not_its_layer(self):
        model = nn.Linear(4, 4)
        binding.name_modules(model=model)
        x = torch.randn(3, 4, requires_grad=True)
        y = model(x)
        gradient, = torch.autograd.grad(y, x, torch.ones_like(y), create_graph=True)
        penalty = (gradient.exp() - 1).sum()
        binding.take()
        penalty.backward()
        owners = {op.node: op.layer for op in binding.take() if op.phase == 'backward'}
        self.assertEqual(owners['ExpBackward0'], '-')
        self.assertEqual(owners['MmBackward0'], 'model')

    def test_custom_function(self):

        class Double(torch.autograd.Function):

            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            def backward(ctx, g):
                return g * 2

        class Module(nn.Module):

            def forward(self, x):
                return Double.apply(x)

        model = Module()
        binding.name_modules(model=model)
        binding.take()
        y = model(torch.ones(3, requires_grad=True))
        y.backward(torch.ones(3))
        self.assertEqual(phases(binding.take(), 'aten::mul'), {('forward', 'model'): 1, ('backward', 'model'): 1})

    def test_exception_in_backward(self):

        class Fails(torch.autograd.Function):

            @staticmethod
            def forward(ctx, x):
                return x.clone()

            @staticmethod
            def backward(ctx, g):
                raise ValueError('as planned')

        x = torch.ones(3, requires_grad=True)
        for _ in range(20):
            with self.assertRaises(ValueError):
                Fails.apply(x * 2).sum().backward()
        self.assertEqual(binding.site().phase, 'other')
        ops = self.train(Block(), torch.randn(3, 4))
        self.assertEqual(orphans(ops), [])

    def test_data_parallel_like_threads_come_and_go(self):
        model = nn.Linear(4, 4)
        binding.name_modules(model=model)
        for _ in range(40):
            outputs = []
            threads = [threading.Thread(target=lambda: outputs.append(model(torch.randn(2, 4)))) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            binding.take()
            sum(o.sum() for o in outputs).backward()
            self.assertEqual(phases(binding.take(), 'aten::mm'), {('backward', 'model'): 4})


class ProgramProfilerTest(TorchTest):

    def test_it_is_seen_while_it_records(self):
        profiles = binding.library().test_program_profiles
        profiles.restype = ctypes.c_bool
        self.assertFalse(profiles())
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]):
            torch.ones(1)
            self.assertTrue(profiles())
        self.assertFalse(profiles())


class ScopeTest(TorchTest):

    def test_optimizer_and_steps(self):
        model = nn.Linear(4, 4)
        binding.name_modules(model=model)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        steps, repairs = binding.library().test_steps(), binding.library().test_repairs()
        for i in range(3):
            optimizer.zero_grad()
            model(torch.randn(2, 4)).sum().backward()
            binding.take()
            optimizer.step()
            ops = binding.take()
            self.assertTrue(ops)
            self.assertEqual({op.phase for op in ops if op.name not in ('aten::zero_', 'aten::zeros')}, {'optimizer'})
            self.assertEqual(binding.library().test_steps(), steps + i + 1)
        # Two scopes and a backward in each step; which classes are new is then looked up.
        self.assertGreaterEqual(binding.library().test_repairs(), repairs + 9)

    def test_closure_of_an_optimizer(self):
        # The step is open around forwards and backwards: the innermost frame decides.
        model = nn.Linear(4, 1)
        binding.name_modules(model=model)
        optimizer = torch.optim.LBFGS(model.parameters(), max_iter=2)
        x = torch.randn(8, 4)
        steps = binding.library().test_steps()

        def closure():
            optimizer.zero_grad()
            loss = model(x).square().sum()
            loss.backward()
            return loss

        binding.take()
        optimizer.step(closure)
        ops = binding.take()
        self.assertEqual({op.phase for op in ops if op.name == 'aten::addmm'}, {'forward'})
        self.assertEqual({op.phase for op in ops if op.name == 'aten::mm'}, {'backward'})
        self.assertIn('optimizer', {op.phase for op in ops if op.name == 'aten::cat'})
        self.assertEqual(binding.library().test_steps(), steps + 1)

    def test_optimizer_in_backward_is_not_a_step_each(self):
        if VERSION < (2, 1):
            self.skipTest('register_post_accumulate_grad_hook came with 2.1')
        model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
        binding.name_modules(model=model)
        steps = binding.library().test_steps()
        for parameter in model.parameters():
            optimizer = torch.optim.SGD([parameter], 0.1)
            parameter.register_post_accumulate_grad_hook(lambda p, o=optimizer: o.step())
        binding.take()
        model(torch.randn(2, 4)).sum().backward()
        ops = binding.take()
        self.assertIn('optimizer', {op.phase for op in ops})
        self.assertEqual({op.phase for op in ops if op.name == 'aten::mm'}, {'backward'})
        self.assertEqual(binding.library().test_steps(), steps)

    def test_data_loader(self):
        data = torch.utils.data.TensorDataset(torch.randn(8, 4))
        loader = iter(torch.utils.data.DataLoader(data, batch_size=4))
        binding.take()
        next(loader)
        self.assertIn('data', {op.phase for op in binding.take() if op.name in ('aten::stack', 'aten::cat')})

    def test_users_own_scopes_change_nothing(self):
        model = nn.Linear(4, 4)
        binding.name_modules(model=model)
        binding.take()
        with torch.profiler.record_function('Optimizer-like scope of mine'):
            model(torch.randn(2, 4))
        self.assertEqual(phases(binding.take(), 'aten::addmm'), {('forward', 'model'): 1})


class CoexistenceTest(TorchTest):

    def test_the_users_profiler(self):
        # torch.profiler and the library both see everything, and the user's shapes and stacks are unchanged.
        model = Block()
        binding.name_modules(model=model)
        binding.take()
        with torch.profiler.profile(record_shapes=True, activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
            model(torch.randn(3, 4)).sum().backward()
        ops = binding.take()
        self.assertEqual(phases(ops, 'aten::mm'), {('backward', 'model.a'): 1, ('backward', 'model.b'): 2})
        seen = {event.key: event.count for event in profile.key_averages()}
        self.assertEqual(seen['aten::mm'], 3)
        self.assertEqual(seen['aten::addmm'], 2)
        self.assertEqual(seen['aten::linear'], 2)
        shapes = [event.input_shapes for event in profile.key_averages(group_by_input_shape=True)
                  if event.key == 'aten::addmm']
        self.assertEqual(shapes, [[[4], [3, 4], [4, 4], [], []]])

    def test_profiler_begun_and_ended_between_operators(self):
        model = Block()
        binding.name_modules(model=model)
        for _ in range(3):
            with torch.autograd.profiler.profile():
                y = model(torch.randn(3, 4))
            binding.take()
            y.sum().backward()
            self.assertEqual(phases(binding.take(), 'aten::mm'), {('backward', 'model.a'): 1, ('backward', 'model.b'): 2})

    def test_torchscript(self):
        model = Block().eval()
        script = torch.jit.script(model)
        with layer('script'):
            binding.take()
            for _ in range(4):
                script(torch.randn(3, 4))
            ops = binding.take()
        self.assertEqual(orphans(ops), [])
        self.assertTrue(any(op.name in ('aten::addmm', 'aten::linear') for op in ops), ops)

    def test_compile_is_not_disturbed(self):
        # Nothing that the library installs is visible to dynamo.
        if VERSION < (2, 0):
            self.skipTest('torch.compile came with 2.0')
        frames = []

        def backend(graph, example):
            frames.append(len(graph.graph.nodes))
            return graph.forward

        torch._dynamo.reset()
        compiled = torch.compile(lambda x: (x * 2).relu().sum(), backend=backend, fullgraph=True)
        for _ in range(3):
            compiled(torch.randn(3, 4))
        self.assertEqual(len(frames), 1)
        exported = torch.export.export(nn.ReLU(), (torch.randn(3),)) if hasattr(torch, 'export') else None
        self.assertTrue(exported is None or exported.graph is not None)


if __name__ == '__main__':
    unittest.main()
