import com.ibm.mq.MQMessage;
import com.ibm.mq.MQQueue;
import com.ibm.mq.MQQueueManager;
import com.ibm.mq.constants.CMQC;
import com.ibm.mq.constants.CMQCFC;
import com.ibm.mq.headers.pcf.PCFException;
import com.ibm.mq.headers.pcf.PCFMessage;
import com.ibm.mq.headers.pcf.PCFMessageAgent;
import java.util.Arrays;
import java.util.Hashtable;

/** What an administration program asks a queue manager, and what it is told. */
public class PcfAgent {
    static PCFMessageAgent agent;

    public static void main(String[] arguments) throws Exception {
        Hashtable<String, Object> properties = new Hashtable<>();
        properties.put(CMQC.HOST_NAME_PROPERTY, "127.0.0.1");
        properties.put(CMQC.PORT_PROPERTY, Integer.parseInt(arguments[0]));
        properties.put(CMQC.CHANNEL_PROPERTY, "APP.SVRCONN");
        MQQueueManager manager = new MQQueueManager("QM1", properties);
        agent = new PCFMessageAgent(manager);
        agent.setWaitInterval(60);
        System.out.println("connected to " + agent.getQManagerName().trim());

        send(CMQCFC.MQCMD_PING_Q_MGR);
        System.out.println("pinged");
        PCFMessage about = send(CMQCFC.MQCMD_INQUIRE_Q_MGR)[0];
        System.out.println("name " + text(about, CMQC.MQCA_Q_MGR_NAME));

        PCFMessage create = new PCFMessage(CMQCFC.MQCMD_CREATE_Q);
        create.addParameter(CMQC.MQCA_Q_NAME, "RAIN");
        create.addParameter(CMQC.MQIA_Q_TYPE, CMQC.MQQT_LOCAL);
        create.addParameter(CMQC.MQIA_MAX_Q_DEPTH, 7);
        agent.send(create);
        create = new PCFMessage(CMQCFC.MQCMD_CREATE_TOPIC);
        create.addParameter(CMQC.MQCA_TOPIC_NAME, "WEATHER");
        create.addParameter(CMQC.MQCA_TOPIC_STRING, "Weather");
        agent.send(create);
        create = new PCFMessage(CMQCFC.MQCMD_CREATE_SUBSCRIPTION);
        create.addParameter(CMQCFC.MQCACF_SUB_NAME, "rain");
        create.addParameter(CMQC.MQCA_TOPIC_STRING, "Weather/Rain/#");
        create.addParameter(CMQCFC.MQCACF_DESTINATION, "RAIN");
        agent.send(create);
        MQQueue queue = manager.accessQueue("RAIN", CMQC.MQOO_OUTPUT);
        for (int n = 0; n < 2; n++) queue.put(new MQMessage());

        for (PCFMessage each : send(CMQCFC.MQCMD_INQUIRE_Q, CMQC.MQCA_Q_NAME, "RAI*"))
            System.out.println("queue " + text(each, CMQC.MQCA_Q_NAME) + ", type "
                    + each.getIntParameterValue(CMQC.MQIA_Q_TYPE) + ", depth "
                    + each.getIntParameterValue(CMQC.MQIA_CURRENT_Q_DEPTH) + " of "
                    + each.getIntParameterValue(CMQC.MQIA_MAX_Q_DEPTH));
        for (PCFMessage each : send(CMQCFC.MQCMD_INQUIRE_Q_NAMES, CMQC.MQCA_Q_NAME, "RAI*"))
            for (String name : each.getStringListParameterValue(CMQCFC.MQCACF_Q_NAMES))
                System.out.println("name " + name.trim());
        for (PCFMessage each : send(CMQCFC.MQCMD_INQUIRE_Q_STATUS, CMQC.MQCA_Q_NAME, "RAIN"))
            System.out.println("status: depth " + each.getIntParameterValue(CMQC.MQIA_CURRENT_Q_DEPTH));
        PCFMessage who = new PCFMessage(CMQCFC.MQCMD_INQUIRE_CONNECTION);
        who.addParameter(CMQCFC.MQBACF_GENERIC_CONNECTION_ID, new byte[0]);
        for (PCFMessage each : agent.send(who))
            System.out.println("connected by " + text(each, CMQCFC.MQCACH_CHANNEL_NAME));
        for (PCFMessage each : send(CMQCFC.MQCMD_INQUIRE_TOPIC, CMQC.MQCA_TOPIC_NAME, "WEATHER"))
            System.out.println("topic " + text(each, CMQC.MQCA_TOPIC_STRING));
        for (PCFMessage each : send(CMQCFC.MQCMD_INQUIRE_SUBSCRIPTION, CMQCFC.MQCACF_SUB_NAME, "rain"))
            System.out.println("subscription to " + text(each, CMQC.MQCA_TOPIC_STRING) + ", to "
                    + text(each, CMQCFC.MQCACF_DESTINATION));
        try {
            send(CMQCFC.MQCMD_INQUIRE_Q, CMQC.MQCA_Q_NAME, "NOT.THERE");
        } catch (PCFException error) {
            System.out.println("unknown " + error.getReason());
        }
        try {
            send(CMQCFC.MQCMD_INQUIRE_SERVICE, CMQC.MQCA_Q_NAME, "X");
        } catch (PCFException error) {
            System.out.println("no such command " + error.getReason());
        }
        try {
            send(CMQCFC.MQCMD_RESET_Q_STATS, CMQC.MQCA_Q_NAME, "RAIN");
        } catch (PCFException error) {
            System.out.println("no performance events " + error.getReason());
        }
        about = send(CMQCFC.MQCMD_INQUIRE_Q_MGR_STATUS)[0];
        System.out.println("running " + (about.getIntParameterValue(CMQCFC.MQIACF_Q_MGR_STATUS) == 2) + ", connected "
                + (about.getIntParameterValue(CMQCFC.MQIACF_CONNECTION_COUNT) > 0));
        for (PCFMessage each : send(CMQCFC.MQCMD_INQUIRE_CHANNEL_NAMES, CMQCFC.MQCACH_CHANNEL_NAME, "SYSTEM.DEF*"))
            for (String name : each.getStringListParameterValue(CMQCFC.MQCACH_CHANNEL_NAMES))
                System.out.println("channel " + name.trim());
        for (PCFMessage each : send(CMQCFC.MQCMD_INQUIRE_AUTH_INFO, CMQC.MQCA_AUTH_INFO_NAME, "SYSTEM.DEFAULT.AUTHINFO.IDP*"))
            System.out.println("authentication " + text(each, CMQC.MQCA_AUTH_INFO_NAME));
        PCFMessage rule = new PCFMessage(CMQCFC.MQCMD_SET_CHLAUTH_REC);
        rule.addParameter(CMQCFC.MQCACH_CHANNEL_NAME, "OTHER");
        rule.addParameter(CMQCFC.MQIACF_CHLAUTH_TYPE, CMQCFC.MQCAUT_ADDRESSMAP);
        rule.addParameter(CMQCFC.MQCACH_CONNECTION_NAME, "10.*");
        rule.addParameter(CMQCFC.MQIACH_USER_SOURCE, CMQC.MQUSRC_NOACCESS);
        agent.send(rule);
        for (PCFMessage each : send(CMQCFC.MQCMD_INQUIRE_CHLAUTH_RECS, CMQCFC.MQCACH_CHANNEL_NAME, "OTHER"))
            System.out.println("rule for " + text(each, CMQCFC.MQCACH_CONNECTION_NAME));
        create = new PCFMessage(CMQCFC.MQCMD_CREATE_LISTENER);
        create.addParameter(CMQCFC.MQCACH_LISTENER_NAME, "SPARE");
        create.addParameter(CMQCFC.MQIACH_XMIT_PROTOCOL_TYPE, CMQCFC.MQXPT_TCP);
        create.addParameter(CMQCFC.MQIACH_PORT, 1499);
        agent.send(create);
        for (PCFMessage each : send(CMQCFC.MQCMD_INQUIRE_LISTENER, CMQCFC.MQCACH_LISTENER_NAME, "SPARE"))
            System.out.println("listener at " + each.getIntParameterValue(CMQCFC.MQIACH_PORT));
        PCFMessage typed = new PCFMessage(CMQCFC.MQCMD_ESCAPE);
        typed.addParameter(CMQCFC.MQIACF_ESCAPE_TYPE, CMQCFC.MQET_MQSC);
        typed.addParameter(CMQCFC.MQCACF_ESCAPE_TEXT, "DISPLAY QLOCAL(RAIN) MAXDEPTH");
        for (PCFMessage each : agent.send(typed))
            System.out.println(text(each, CMQCFC.MQCACF_ESCAPE_TEXT).replaceAll("\\s+", " "));
        send(CMQCFC.MQCMD_DELETE_SUBSCRIPTION, CMQCFC.MQCACF_SUB_NAME, "rain");
        System.out.println("deleted");
        queue.close();
        agent.disconnect();
        manager.disconnect();
        System.out.println("closed");
    }

    static PCFMessage[] send(int command) throws Exception {
        return agent.send(new PCFMessage(command));
    }

    static PCFMessage[] send(int command, int parameter, String value) throws Exception {
        PCFMessage message = new PCFMessage(command);
        message.addParameter(parameter, value);
        PCFMessage[] responses = agent.send(message);
        Arrays.sort(responses, (one, other) -> Integer.compare(one.getMsgSeqNumber(), other.getMsgSeqNumber()));
        return responses;
    }

    static String text(PCFMessage message, int parameter) throws Exception {
        return message.getStringParameterValue(parameter).trim();
    }
}
