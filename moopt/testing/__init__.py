"""Contract kits: test classes that your own indicator, problem, optimizer, agent or sampler can inherit.

Import a kit by its module, for example ``from moopt.testing.indicators import IndicatorContract``. The kits
need pytest.
"""
