// Drives an exported controller by the lines of its input, and answers each by a line.
//
//     override NAME NUMBER   before the configuration
//     configure | activate | deactivate | estop | set NAME NUMBER...
//     reference q... qd... qdd...   in the order of PACKAGE::JOINTS; of a law with one
//     target_pose | target_twist | target_wrench | target_stiffness FRAME NUMBER...
//         of the law of a tool, in the order of the message; FRAME - is the root
//     cycle PERIOD q... qd...       answers with the result of update and the efforts
#include "controller.cpp"

#include <iostream>
#include <sstream>

#if DYN_TRACKS
using Interface = controller_interface::ChainableControllerInterface;
#else
using Interface = controller_interface::ControllerInterface;
#endif

#if DYN_TOOL
template <typename Message, typename Part>
void send(rclcpp_lifecycle::LifecycleNode &node, const std::string &topic, const std::string &frame,
          const std::vector<double> &x, Part part) {
    const auto message = std::make_shared<Message>();
    if (frame != "-") message->header.frame_id = frame;
    auto [first, second] = part(*message);
    *first = {x[0], x[1], x[2]};
    *second = {x[3], x[4], x[5], x.size() > 6 ? x[6] : 0.0};
    node.send("~/" + topic, message);
}
#endif

int main() {
    Exported made;
    Interface &controller = made;
    auto &node = *controller.node;
    node.overrides["robot_compensates_gravity"] = false;
    constexpr std::size_t N = PACKAGE::N;
    std::array<double, N> q{}, qd{}, effort{};
    // In another order than that of the joints, as a robot may have them.
    for (std::size_t j = N; j-- > 0;) {
        const std::string name = PACKAGE::JOINTS[j];
        controller.state_interfaces_.push_back({name + "/velocity", &qd[j]});
        controller.state_interfaces_.push_back({name + "/position", &q[j]});
        controller.command_interfaces_.push_back({name + "/effort", &effort[j]});
    }
    for (std::string line, word; std::getline(std::cin, line);) {
        std::istringstream words(line);
        const auto number = [&] { return words >> word, std::strtod(word.c_str(), nullptr); };
        words >> word;
        if (word == "override") {
            std::string name;
            words >> name;
            node.overrides[name] = number();
            std::cout << "noted" << std::endl;
        } else if (word == "configure") {
            made.on_init();
            std::cout << int(made.on_configure({})) << std::endl;
#if DYN_TRACKS
            controller.on_export_reference_interfaces();
#endif
        } else if (word == "activate") {
            std::cout << int(made.on_activate({})) << std::endl;
        } else if (word == "deactivate") {
            std::cout << int(made.on_deactivate({})) << std::endl;
        } else if (word == "estop") {
            using std_srvs::srv::Trigger;
            const auto answer = std::make_shared<Trigger::Response>();
            std::static_pointer_cast<rclcpp::Service<Trigger>>(node.service)->call({}, answer);
            std::cout << answer->message << std::endl;
        } else if (word == "set") {
            std::string name;
            words >> name;
            std::vector<double> row;
            while (words >> word) row.push_back(std::strtod(word.c_str(), nullptr));
            const auto kind = node.values.at(name).get_type();
            rclcpp::ParameterValue value(row);
            if (kind == rclcpp::ParameterType::PARAMETER_DOUBLE) value = row[0];
            if (kind == rclcpp::ParameterType::PARAMETER_BOOL) value = row[0] != 0.0;
            std::cout << node.set_parameter({name, value}) << std::endl;
#if DYN_TOOL
        } else if (word.rfind("target_", 0) == 0) {
            using namespace geometry_msgs::msg;
            const std::string topic = word;
            std::string frame;
            words >> frame;
            std::vector<double> x;
            while (words >> word) x.push_back(std::strtod(word.c_str(), nullptr));
            if (topic == "target_pose")
                send<PoseStamped>(node, topic, frame, x, [](auto &m) {
                    return std::pair(&m.pose.position, &m.pose.orientation);
                });
            else if (topic == "target_twist")
                send<TwistStamped>(node, topic, frame, x, [](auto &m) {
                    return std::pair(&m.twist.angular, &m.twist.linear);
                });
            else
                send<WrenchStamped>(node, topic, frame, x, [](auto &m) {
                    return std::pair(&m.wrench.torque, &m.wrench.force);
                });
            std::cout << "sent" << std::endl;
#endif
#if DYN_TRACKS
        } else if (word == "reference") {
            using trajectory_msgs::msg::JointTrajectory;
            const auto message = std::make_shared<JointTrajectory>();
            message->joint_names.assign(PACKAGE::JOINTS, PACKAGE::JOINTS + N);
            auto &point = message->points.emplace_back();
            for (auto *row : {&point.positions, &point.velocities, &point.accelerations})
                for (std::size_t j = 0; j < N; ++j) row->push_back(number());
            node.send("~/reference", message);
            std::cout << "sent" << std::endl;
#endif
        } else if (word == "cycle") {
            const rclcpp::Duration period{number()};
            for (auto *row : {&q, &qd})
                for (double &x : *row) x = number();
#if DYN_TRACKS
            controller.update_reference_from_subscribers({}, period);
            std::cout << int(controller.update_and_write_commands({}, period));
#else
            std::cout << int(controller.update({}, period));
#endif
            std::cout.precision(17);
            for (const double x : effort) std::cout << " " << x;
            std::cout << std::endl;
        }
    }
}
