from typing import Any

class _Lib:
    def pe_simd_level(self) -> int: ...
    def pe_exp_at(self, x: float, /) -> float: ...
    def pe_expm1_at(self, x: float, /) -> float: ...
    def pe_log_at(self, x: float, /) -> float: ...
    def pe_log1p_at(self, x: float, /) -> float: ...
    def pe_sin_at(self, x: float, /) -> float: ...
    def pe_cos_at(self, x: float, /) -> float: ...
    def pe_erfc_at(self, x: float, /) -> float: ...
    def pe_atan2_at(self, x: float, y: float, /) -> float: ...
    def pe_hypot_at(self, x: float, y: float, /) -> float: ...
    def pe_pow_at(self, x: float, y: float, /) -> float: ...
    def pe_logaddexp_at(self, x: float, y: float, /) -> float: ...
    def pe_exp_array(self, n: int, x: Any, out: Any, /) -> None: ...
    def pe_expm1_array(self, n: int, x: Any, out: Any, /) -> None: ...
    def pe_log_array(self, n: int, x: Any, out: Any, /) -> None: ...
    def pe_log1p_array(self, n: int, x: Any, out: Any, /) -> None: ...
    def pe_sin_array(self, n: int, x: Any, out: Any, /) -> None: ...
    def pe_cos_array(self, n: int, x: Any, out: Any, /) -> None: ...
    def pe_erfc_array(self, n: int, x: Any, out: Any, /) -> None: ...
    def pe_atan2_array(self, n: int, x: Any, y: Any, out: Any, /) -> None: ...
    def pe_hypot_array(self, n: int, x: Any, y: Any, out: Any, /) -> None: ...
    def pe_pow_array(self, n: int, x: Any, y: Any, out: Any, /) -> None: ...
    def pe_logaddexp_array(self, n: int, x: Any, y: Any, out: Any, /) -> None: ...
    def pe_log_sums(self, n: int, x: Any, out: Any, /) -> None: ...
    def pe_normal_pdf(self, x: float, /) -> float: ...
    def pe_normal_pdf_array(self, x: Any, out: Any, n: int, /) -> None: ...
    def pe_ndtr(self, x: float, /) -> float: ...
    def pe_ndtr_array(self, x: Any, out: Any, n: int, /) -> None: ...
    def pe_log_ndtr(self, x: float, /) -> float: ...
    def pe_log_ndtr_array(self, x: Any, out: Any, n: int, /) -> None: ...
    def pe_ndtri(self, p: float, /) -> float: ...
    def pe_ndtri_array(self, p: Any, out: Any, n: int, /) -> None: ...
    def pe_ndtri_exp(self, y: float, /) -> float: ...
    def pe_ndtri_exp_array(self, y: Any, out: Any, n: int, /) -> None: ...

    PE_A_ABOVE: int
    PE_A_BELOW: int
    PE_B_ABOVE: int
    PE_B_BELOW: int
    PE_FUNCTIONALS: int
    PE_LAPLACE_STEPS: int
    PE_KERNELS: int
    PE_RELATIVE: int
    PE_SCALED: int
    PE_SCALED_OF_B: int
    PE_ALTERNATIVES: int
    PE_NO_MEMORY: int
    PE_OK: int
    PE_ADD: int
    PE_REMOVE: int
    PE_ADD_REMOVE: int
    PE_THOROUGH: int
    PE_SOON: int
    PE_ASKS_BETA: int
    PE_ASKS_GAMMA: int
    PE_ASKS_DELTA: int
    PE_ASKS_EPSILON: int
    PE_PROFILE: int
    PE_CHEBYSHEV: int
    PE_ROW: int
    PE_BOUNDS: int
    PE_TOO_COSTLY: int
    PE_RAISED: int
    def pe_bounds_of_rows(self, n: int, rows: Any, slack: float, bounds: Any, /) -> None: ...
    def pe_bounds_line(
        self,
        n: int,
        functional: int,
        tail: Any,
        c: Any,
        bounds: Any,
        slack: float,
        beta: Any,
        gamma: Any,
        /,
    ) -> None: ...
    def pe_bounds_chord(
        self,
        n: int,
        functional: int,
        tail: Any,
        beyond: Any,
        bounds: Any,
        slack: float,
        beta: Any,
        gamma: Any,
        /,
    ) -> None: ...
    def pe_bounds_aside(
        self,
        n: int,
        functional: int,
        tail: Any,
        c: Any,
        bounds: Any,
        attempt: int,
        there: Any,
        beyond: Any,
        at: Any,
        /,
    ) -> int: ...
    def pe_bounds_cross(
        self, n: int, beta_low: Any, beta_high: Any, gamma_low: Any, gamma_high: Any, /
    ) -> None: ...
    def pe_bounds_best(
        self, n: int, functional: int, tail: Any, rows: Any, beta: Any, gamma: Any, /
    ) -> None: ...
    def pe_bounds_best_epsilon(self, n: int, delta: Any, rows: Any, epsilon: Any, /) -> None: ...
    def pe_bounds_level(
        self, functional: int, tail: float, row: Any, slack: float, out: Any, /
    ) -> int: ...
    def pe_bounds_epsilon(self, delta: float, row: Any, slack: float, out: Any, /) -> int: ...
    def pe_bounds_gain(self, n: int, c: Any, bounds: Any, slack: float, gain: Any, /) -> None: ...
    def pe_largest_loss(self, n: int, p: Any, steps: Any, out: Any, /) -> None: ...
    def pe_most_at_zero(self, n: int, noise: Any, p: Any, steps: Any, /) -> float: ...
    def pe_log_next_to_largest(
        self, n: int, noise: Any, p: Any, steps: Any, is_reversed: int, /
    ) -> float: ...
    def pe_next_to_largest(
        self,
        n: int,
        noise: Any,
        p: Any,
        steps: Any,
        is_reversed: int,
        functional: int,
        levels: int,
        log_tail: Any,
        out: Any,
        /,
    ) -> int: ...
    def pe_plan_one(
        self, plan: Any, first: Any, second: Any, question: int, x: float, out: Any, /
    ) -> int: ...
    def pe_plan_many(
        self,
        like: Any,
        orders: int,
        cost_limit: float,
        n: int,
        noise: Any,
        rate: Any,
        steps: Any,
        question: int,
        x: Any,
        stop: Any,
        out: Any,
        answered: Any,
        /,
    ) -> int: ...
    def pe_straight_levels(
        self,
        n: int,
        alpha: Any,
        zero: Any,
        straight: Any,
        widest: Any,
        beta: Any,
        gamma: Any,
        where: Any,
        /,
    ) -> int: ...
    def pe_bounds_tangent(
        self,
        n: int,
        delta: Any,
        c: Any,
        bounds: Any,
        slack: float,
        lower: Any,
        step: Any,
        /,
    ) -> None: ...
    def pe_row_good(self, row: Any, functional: int, limit: float, limit_tiny: float, /) -> int: ...
    def pe_rows_judge(
        self,
        n: int,
        rows: Any,
        functional: int,
        limit: float,
        limit_tiny: float,
        errors: Any,
        good: Any,
        /,
    ) -> None: ...
    def pe_trade_off_answers(self, n: int, alpha: Any, rows: Any, out: Any, /) -> None: ...
    def pe_profile_answers(self, n: int, rows: Any, out: Any, /) -> None: ...
    def pe_epsilon_answers(self, n: int, rows: Any, out: Any, /) -> None: ...
    def pe_chebyshev_panels(
        self,
        n: int,
        s: Any,
        width: float,
        first: int,
        panels: int,
        coefficients: Any,
        of_log: int,
        out: Any,
        /,
    ) -> None: ...
    def pe_chebyshev_series(
        self,
        n: int,
        t: Any,
        which: Any,
        rows: int,
        terms: int,
        coefficients: Any,
        out: Any,
        /,
    ) -> None: ...
    def pe_step_trade_off(self, step: Any, n: int, alpha: Any, out: Any, /) -> None: ...
    def pe_step_profile(self, step: Any, n: int, epsilon: Any, out: Any, /) -> None: ...
    def pe_step_epsilon(self, step: Any, n: int, delta: Any, out: Any, /) -> None: ...
    def pe_pair_new(
        self,
        n: int,
        noise: Any,
        p: Any,
        steps: Any,
        is_reversed: bool,
        cost_limit: float,
        out: Any,
        /,
    ) -> int: ...
    def pe_pair_add_mixtures(
        self,
        pair: Any,
        steps: float,
        alternatives: int,
        log_share: Any,
        sizes: Any,
        shift: Any,
        weight: Any,
        terms: Any,
        exact: Any,
        /,
    ) -> int: ...
    def pe_pair_add_table(
        self, pair: Any, steps: float, m: int, loss: Any, log_weight: Any, t_max: float, /
    ) -> int: ...
    def pe_pair_free(self, pair: Any, /) -> None: ...
    def pe_pair_bytes(self, pair: Any, /) -> int: ...
    def pe_pair_certify(
        self, pair: Any, functional: int, thorough: int, n: int, c: Any, rows: Any, /
    ) -> int: ...
    def pe_pair_certify_divided(
        self, pair: Any, functional: int, n: int, c: Any, rows: Any, /
    ) -> int: ...
    def pe_pair_chernoff(self, pair: Any, n: int, c: Any, rows: Any, /) -> int: ...
    def pe_pair_certified_solve(
        self, pair: Any, functional: int, n: int, log_target: Any, rows: Any, /
    ) -> int: ...
    def pe_pair_certify_beyond(
        self,
        pair: Any,
        functional: int,
        slack: float,
        thorough: int,
        n: int,
        log_target: Any,
        rows: Any,
        /,
    ) -> int: ...
    def pe_pair_at(self, pair: Any, functional: int, n: int, c: Any, rows: Any, /) -> int: ...
    def pe_pair_solve(
        self, pair: Any, functional: int, n: int, log_target: Any, rows: Any, /
    ) -> int: ...
    def pe_mixture_kind_new(self, pair: Any, at: float, farthest: float, out: Any, /) -> int: ...
    def pe_mixture_kind_free(self, kind: Any, /) -> None: ...
    def pe_mixture_kind_beyond(self, kind: Any, n: int, t: Any, log_modulus: Any, /) -> None: ...
    def pe_mixture_kind_log_above(self, kind: Any, at: float, /) -> float: ...
    def pe_mixture_kind_finish(
        self, kind: Any, t_last: float, t_top: float, out: Any, /
    ) -> int: ...
    def pe_mixture_kind_values(
        self,
        kind: Any,
        n: int,
        ht: float,
        log_modulus: Any,
        angle: Any,
        error: Any,
        top: Any,
        /,
    ) -> int: ...
    def pe_pair_cumulants(self, pair: Any, n: int, at: Any, out: Any, /) -> int: ...
    def pe_pair_log_above(self, pair: Any, at: float, out: Any, /) -> int: ...
    def pe_epoch_new(self, noise: float, steps: float, epochs: float, out: Any, /) -> int: ...
    def pe_epoch_free(self, epoch: Any, /) -> None: ...
    def pe_epoch_bytes(self, epoch: Any, /) -> int: ...
    def pe_epoch_ends(self, epoch: Any, out: Any, /) -> None: ...
    def pe_epoch_log_density(self, epoch: Any, n: int, loss: Any, out: Any, /) -> None: ...
    def pe_epoch_at(self, epoch: Any, is_reversed: int, n: int, c: Any, rows: Any, /) -> int: ...
    def pe_epoch_solve(
        self, epoch: Any, is_reversed: int, functional: int, n: int, log_target: Any, rows: Any, /
    ) -> int: ...
    def pe_sector_step(
        self,
        shift: Any,
        ratio: Any,
        floor: Any,
        probability: float,
        deepest: float,
        rarest: float,
        steps: float,
        reach: float,
        out: Any,
        /,
    ) -> int: ...
    def pe_sector_group(
        self,
        shift: Any,
        size: int,
        ratios: Any,
        floor: Any,
        deepest: float,
        rarest: float,
        steps: float,
        reach: float,
        out: Any,
        /,
    ) -> int: ...
    def pe_sector_ratio(self, shift: Any, deepest: float, steps: float, out: Any, /) -> int: ...
    def pe_sector_pieces_new(self) -> Any: ...
    def pe_sector_pieces_free(self, pieces: Any, /) -> None: ...
    def pe_sector_convolve(self, a: Any, b: Any, pieces: Any, out: Any, /) -> int: ...
    def pe_sector_compose(self, a: Any, b: Any, pieces: Any, out: Any, /) -> int: ...
    def pe_sector_free(self, law: Any, /) -> None: ...
    def pe_sector_bytes(self, law: Any, /) -> int: ...
    def pe_sector_panels(self, law: Any, /) -> int: ...
    def pe_sector_work(self, law: Any, /) -> float: ...
    def pe_sector_ends(self, law: Any, ends: Any, /) -> None: ...
    def pe_sector_reach(self, law: Any, /) -> float: ...
    def pe_sector_error(self, law: Any, /) -> float: ...
    def pe_sector_keep(self, law: Any, /) -> int: ...
    def pe_sector_at(self, law: Any, is_reversed: bool, n: int, c: Any, rows: Any, /) -> int: ...
    def pe_sector_solve(
        self, law: Any, is_reversed: bool, functional: int, n: int, log_target: Any, c: Any, /
    ) -> None: ...
    def pe_sector_densities(
        self, law: Any, n: int, start: Any, step: Any, value: Any, error: Any, /
    ) -> None: ...
    def pe_sector_ellipses(
        self, law: Any, n: int, mid: Any, half: Any, m: int, rho: Any, bound: Any, /
    ) -> None: ...
    def pe_sector_beyond(self, law: Any, out: Any, /) -> None: ...
    def pe_law_step(
        self,
        terms: int,
        shift: Any,
        ratio: Any,
        rest: Any,
        floor: float,
        floor_low: float,
        deepest: float,
        max_panels: int,
        out: Any,
        /,
    ) -> int: ...
    def pe_law_convolve(self, a: Any, b: Any, max_panels: int, out: Any, /) -> int: ...
    def pe_law_free(self, law: Any, /) -> None: ...
    def pe_law_panels(self, law: Any, /) -> int: ...
    def pe_law_bytes(self, law: Any, /) -> int: ...
    def pe_law_at(self, law: Any, is_reversed: bool, n: int, c: Any, rows: Any, /) -> None: ...
    def pe_law_solve(
        self, law: Any, is_reversed: bool, functional: int, n: int, log_target: Any, rows: Any, /
    ) -> None: ...
    def pe_threefry(self, k0: int, k1: int, c0: int, c1: int, out: Any, /) -> None: ...
    def pe_sample_losses(
        self, seed: int, first: int, n: int, tables: int, table: Any, out: Any, /
    ) -> None: ...
    def pe_random_steps_room(self, steps: Any, n: int, /) -> int: ...
    def pe_random_step_losses(
        self, steps: Any, n: int, z: Any, x: Any, share: Any, work: Any, out: Any, /
    ) -> None: ...
    def pe_mean_cells(
        self,
        n: int,
        x: Any,
        a: Any,
        m: int,
        y: Any,
        b: Any,
        p: float,
        q: float,
        is_square: bool,
        cells: int,
        edge: Any,
        mass: Any,
        share: Any,
        /,
    ) -> None: ...
    def pe_state_cells(
        self,
        n: int,
        first: Any,
        m: int,
        second: Any,
        is_square: bool,
        slope: float,
        lines: int,
        line: Any,
        rows: int,
        node: Any,
        is_apart: bool,
        out: Any,
        count: Any,
        /,
    ) -> None: ...
    def pe_normal_cells(self, n: int, z: Any, shift: float, log_mass: Any, /) -> None: ...
    PE_SUM_BLOCK: int
    def pe_lattice_cells(self, grid: Any, cells: Any, out: Any, /) -> None: ...
    def pe_spectrum_power(
        self, n: int, z: Any, steps: float, error: float, other: Any, bound: Any, slack: Any, /
    ) -> None: ...
    def pe_exponential_sums(
        self, n: int, y: Any, centre: float, rate: float, out: Any, /
    ) -> None: ...
    def pe_discounted_sums(self, n: int, y: Any, log_q: float, sums: Any, /) -> None: ...
    def pe_profile_sums(
        self, n: int, y: Any, log_q: float, h: float, below: Any, profile: Any, /
    ) -> None: ...
    def pe_loss_transform(
        self, n: int, frequency: Any, m: int, apart: Any, share: Any, real: Any, imag: Any, /
    ) -> None: ...
    def pe_loss_transform_grid(
        self, n: int, spacing: float, m: int, apart: Any, share: Any, real: Any, imag: Any, /
    ) -> int: ...
    def pe_ray_sums(
        self,
        n: int,
        factor: Any,
        blocks: Any,
        row: Any,
        size: int,
        node_real: Any,
        node_imag: Any,
        kinds: int,
        weight_real: Any,
        weight_imag: Any,
        out: Any,
        /,
    ) -> None: ...
    def pe_loss_line_scale(
        self,
        at: Any,
        n: int,
        c: Any,
        log: Any,
        error: Any,
        /,
    ) -> None: ...
    def pe_loss_line_at(
        self,
        at: Any,
        room: Any,
        n: int,
        c: Any,
        first: int,
        kinds: int,
        form: int,
        value: Any,
        error: Any,
        /,
    ) -> int: ...
    def pe_line_law_masses(self, law: Any, n: int, c: Any, out: Any, /) -> int: ...
    def pe_line_law_tails(self, law: Any, n: int, c: Any, tails: Any, /) -> int: ...
    def pe_line_law_roughly(self, law: Any, c: float, masses: Any, /) -> int: ...
    def pe_line_law_profile(
        self, law: Any, n: int, epsilon: Any, value: Any, error: Any, /
    ) -> int: ...
    def pe_line_law_profile_about(
        self, law: Any, near: float, epsilon: float, out: Any, /
    ) -> int: ...
    def pe_line_law_expected(
        self,
        law: Any,
        n: int,
        alpha: Any,
        low: Any,
        high: Any,
        /,
    ) -> None: ...
    def pe_level_tails(self, n: int, masses: Any, shift: Any, out: Any, /) -> None: ...
    def pe_level_chord(
        self,
        points: int,
        n: int,
        alpha: Any,
        tails: Any,
        rounding: float,
        beta: Any,
        gamma: Any,
        /,
    ) -> None: ...
    def pe_level_excess(
        self,
        points: int,
        n: int,
        alpha: Any,
        tails: Any,
        rounding: float,
        least: Any,
        most: Any,
        /,
    ) -> None: ...
    def pe_level_tangents(
        self,
        points: int,
        n: int,
        alpha: Any,
        c: Any,
        reach: Any,
        tails: Any,
        rounding: float,
        below: Any,
        above: Any,
        /,
    ) -> None: ...
    def pe_level_reach(self, shift: float, c: float, /) -> float: ...
    def pe_level_errors(
        self,
        points: int,
        n: int,
        alpha: Any,
        c: Any,
        tails: Any,
        rounding: float,
        shown: float,
        out: Any,
        /,
    ) -> None: ...
    def pe_level_better(self, n: int, c: Any, first: Any, second: Any, out: Any, /) -> None: ...
    def pe_falling_root(
        self,
        of: Any,
        handle: Any,
        expected: Any,
        ends: Any,
        room: float,
        jumps: int,
        jump: Any,
        noise: float,
        out: Any,
        /,
    ) -> int: ...
    def pe_tests_at_levels(
        self,
        tests: Any,
        n: int,
        alpha: Any,
        low: Any,
        high: Any,
        rounding: float,
        c: Any,
        tails: Any,
        /,
    ) -> int: ...
    def pe_tests_errors(
        self,
        tests: Any,
        n: int,
        alpha: Any,
        low: Any,
        high: Any,
        rounding: float,
        shown: float,
        out: Any,
        /,
    ) -> int: ...
    def pe_finite_law_tails(self, law: Any, n: int, c: Any, tails: Any, /) -> int: ...
    def pe_finite_law_roughly(self, law: Any, c: float, masses: Any, /) -> int: ...
    def pe_laplace_sum_roughly(self, law: Any, c: float, masses: Any, /) -> int: ...
    def pe_laplace_sum_law(
        self, steps: int, ratio: float, has_atoms: bool, curve: Any, atoms: Any, /
    ) -> int: ...
    def pe_laplace_sum_tails(self, law: Any, n: int, c: Any, tails: Any, /) -> int: ...
    def pe_laplace_sum_profile(
        self, law: Any, n: int, epsilon: Any, low: Any, out: Any, /
    ) -> int: ...
    def pe_finite_law_profile(
        self, law: Any, n: int, epsilon: Any, low: Any, out: Any, /
    ) -> int: ...
    def pe_finite_law_start(self, law: Any, delta: float, epsilon: Any, /) -> int: ...
    def pe_mixed_law_profile(
        self, law: Any, n: int, epsilon: Any, low: Any, out: Any, /
    ) -> int: ...
    def pe_mixed_law_tails(self, law: Any, n: int, c: Any, tails: Any, /) -> int: ...
    def pe_mixed_law_roughly(self, law: Any, c: float, masses: Any, /) -> int: ...
    def pe_profile_deltas(self, profile: Any, n: int, epsilon: Any, out: Any, /) -> int: ...
    def pe_profile_epsilons(self, profile: Any, n: int, delta: Any, out: Any, /) -> int: ...
    def pe_bernstein_exponentials(self, rate: float, size: int, even: Any, odd: Any, /) -> None: ...
    def pe_tests_hull(
        self,
        add: Any,
        remove: Any,
        n: int,
        alpha: Any,
        low: Any,
        high: Any,
        rounding: float,
        out: Any,
        /,
    ) -> int: ...
    python_function: Any
    python_roughly: Any
    python_tails: Any
    python_profile: Any
    python_low: Any
    python_line: Any
    def pe_panel_beyond(
        self,
        row: Any,
        rule: Any,
        n: int,
        y: Any,
        closed: bool,
        out: Any,
        /,
    ) -> None: ...
    def pe_legendre_values(self, size: int, n: int, s: Any, out: Any, /) -> None: ...
    def pe_legendre_extended(self, size: int, n: int, s: Any, out: Any, /) -> None: ...
    def pe_extended_product(
        self, rows: int, inner: int, columns: int, a: Any, b: Any, out: Any, /
    ) -> None: ...
    def pe_gauss_nodes(self, n: int, place: Any, weight: Any, /) -> None: ...
    def pe_laplace_nodes(
        self,
        branch: Any,
        panels: int,
        edges: Any,
        size: int,
        place: Any,
        weight: Any,
        loss: Any,
        mass: Any,
        /,
    ) -> None: ...
    def pe_wide_exp(self, n: int, x: Any, value: Any, power: Any, /) -> None: ...
    def pe_wide_log(self, n: int, x: Any, power: Any, value: Any, /) -> None: ...
    def pe_step_at_tilt(
        self,
        n: int,
        loss: Any,
        mass: Any,
        power: Any,
        tilt: float,
        log_mean: Any,
        share: Any,
        apart: Any,
        /,
    ) -> float: ...
    def pe_log_mean_of_nodes(
        self, n: int, loss: Any, log_mass: Any, tilt: float, top: Any, /
    ) -> float: ...
    def pe_running_sums(self, n: int, x: Any, out: Any, /) -> None: ...
    def pe_less_product(self, a: Any, b: float, c: float, /) -> float: ...
    def pe_legendre_products(self, size: int, table: Any, weight: Any, /) -> int: ...
    def pe_panel_products(
        self,
        points: int,
        first: int,
        second: int,
        made: int,
        size: int,
        table: Any,
        a: Any,
        b: Any,
        same: int,
        out: Any,
        /,
    ) -> int: ...
    def pe_panel_ends(
        self,
        n: int,
        rest: Any,
        panel: Any,
        size: int,
        series: Any,
        scale: Any,
        rate: float,
        bent: float,
        reach: float,
        count: int,
        place: Any,
        weight: Any,
        out: Any,
        /,
    ) -> None: ...
    def pe_norm_moments(
        self,
        grid: Any,
        records: int,
        columns: int,
        norm: Any,
        clip: float,
        times: Any,
        basis: Any,
        moments: Any,
        count: Any,
        below: Any,
        /,
    ) -> None: ...
    def pe_call_corners(
        self, n: int, middle: int, x: Any, k: Any, value: Any, corner: Any, slopes: Any, /
    ) -> int: ...
    def pe_turned_sums(self, records: int, n: int, parts: Any, turn: Any, out: Any, /) -> None: ...

lib: _Lib
ffi: Any
