// A simulated arm at 10 kHz: an exported controller and an exported step in time.
#include <cmath>
#include <cstdio>
#include <exception>

#include "dyn_controller.hpp"

constexpr double period = 1e-4, duration = 1.0;
constexpr int joints = 7, cycles = 20000;
constexpr double start[joints] = {0.0, 0.3, 0.0, -1.2, 0.0, 1.0, 0.0};
constexpr double way[joints] = {0.5, 0.4, -0.3, -0.6, 0.4, 0.5, -0.5};

int run(const char *folder) {
    dyn::Controller controller(folder, "computed_torque_cycle_arm7");
    dyn::Kernel step(folder, "semi_implicit_euler_arm7", controller.about().model_hash);
    controller.gains(400.0, 40.0);

    double q[joints], qd[joints] = {}, tau[joints] = {}, q_next[joints], qd_next[joints];
    double q_ref[joints], qd_ref[joints], qdd_ref[joints], dt = period;
    for (int j = 0; j < joints; ++j) q[j] = start[j];
    step.input("q", q, joints);
    step.input("qd", qd, joints);
    step.input("tau", tau, joints);
    step.input("dt", &dt, 1);
    step.output("q_next", q_next, joints);
    step.output("qd_next", qd_next, joints);
    step.check();

    double worst = 0.0, squares = 0.0;
    for (int k = 0; k < cycles; ++k) {
        const double t = k * period;
        const double s = t < duration ? t / duration : 1.0;  // a quintic, then rest
        const double a = s * s * s * (10 + s * (6 * s - 15));
        const double ad = 30 * s * s * (1 + s * (s - 2)) / duration;
        const double add = 60 * s * (1 + s * (2 * s - 3)) / (duration * duration);
        for (int j = 0; j < joints; ++j) {
            q_ref[j] = start[j] + way[j] * a;
            qd_ref[j] = way[j] * ad;
            qdd_ref[j] = way[j] * add;
        }
        const double *sent = controller.update(t, q, qd, {q_ref, qd_ref, qdd_ref});
        for (int j = 0; j < joints; ++j) {
            tau[j] = sent[j];
            worst = std::fmax(worst, std::fabs(q_ref[j] - q[j]));
            squares += (q_ref[j] - q[j]) * (q_ref[j] - q[j]);
        }
        if (step.run() != 0) throw dyn::Error("the step fails");
        for (int j = 0; j < joints; ++j) q[j] = q_next[j], qd[j] = qd_next[j];
        if (k % 2000 == 1999) std::printf("%.1f s: tau[1] %a N·m\n", t, tau[1]);
    }
    std::printf("tracking error: largest %.3g rad, mean square %.3g rad, drives: %s\n",
                worst, std::sqrt(squares / (cycles * joints)),
                controller.drives() ? "yes" : "no");
    return controller.drives() ? 0 : 1;
}

int main(int argc, char **argv) try {
    return run(argc > 1 ? argv[1] : "kernels");
} catch (const std::exception &error) { return std::fprintf(stderr, "%s\n", error.what()), 2; }
