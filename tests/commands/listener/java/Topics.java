import com.ibm.mq.MQException;
import com.ibm.mq.MQGetMessageOptions;
import com.ibm.mq.MQMessage;
import com.ibm.mq.MQPutMessageOptions;
import com.ibm.mq.MQQueueManager;
import com.ibm.mq.MQTopic;
import com.ibm.mq.constants.CMQC;
import java.util.Hashtable;

/** MQTopic of IBM MQ classes for Java: put, and managed, durable and unmanaged subscriptions. Argument: port. */
public class Topics {
  static String get(MQTopic topic) throws Exception {
    MQGetMessageOptions options = new MQGetMessageOptions();
    options.options = CMQC.MQGMO_WAIT | CMQC.MQGMO_NO_SYNCPOINT | CMQC.MQGMO_PROPERTIES_IN_HANDLE;
    options.waitInterval = 10_000;
    MQMessage message = new MQMessage();
    try {
      topic.get(message, options);
      return message.readStringOfByteLength(message.getDataLength());
    } catch (MQException error) {
      return String.valueOf(error.reasonCode);
    }
  }

  static void put(MQTopic topic, String text, int options) throws Exception {
    MQMessage message = new MQMessage();
    message.format = CMQC.MQFMT_STRING;
    message.writeString(text);
    MQPutMessageOptions put = new MQPutMessageOptions();
    put.options |= options;
    topic.put(message, put);
  }

  public static void main(String[] arguments) throws Exception {
    Hashtable<String, Object> properties = new Hashtable<>();
    properties.put(CMQC.HOST_NAME_PROPERTY, "127.0.0.1");
    properties.put(CMQC.PORT_PROPERTY, Integer.parseInt(arguments[0]));
    properties.put(CMQC.CHANNEL_PROPERTY, "APP.SVRCONN");
    properties.put(CMQC.TRANSPORT_PROPERTY, CMQC.TRANSPORT_MQSERIES_CLIENT);
    MQQueueManager queueManager = new MQQueueManager("QM1", properties);
    MQTopic publisher =
        queueManager.accessTopic("Games/Golf", "", CMQC.MQTOPIC_OPEN_AS_PUBLICATION, CMQC.MQOO_OUTPUT);

    MQTopic managed =
        queueManager.accessTopic("Games/Golf", "", CMQC.MQTOPIC_OPEN_AS_SUBSCRIPTION, CMQC.MQSO_CREATE);
    put(publisher, "one", 0);
    System.out.println("managed " + get(managed));

    int create = CMQC.MQSO_CREATE | CMQC.MQSO_RESUME | CMQC.MQSO_DURABLE;
    MQTopic durable = queueManager.accessTopic("Games/Golf", "", create, null, "golf");
    durable.close();
    put(publisher, "while away", 0);
    durable = queueManager.accessTopic("Games/Golf", "", create, null, "golf");
    System.out.println("durable " + get(durable));
    durable.getSubscriptionReference().setCloseOptions(CMQC.MQCO_REMOVE_SUB);
    durable.close();
    try {
      queueManager.accessTopic("", "", CMQC.MQSO_RESUME | CMQC.MQSO_DURABLE, null, "golf");
    } catch (MQException error) {
      System.out.println("removed " + error.reasonCode);
    }

    put(publisher, "kept", CMQC.MQPMO_RETAIN);
    MQTopic unmanaged =
        queueManager.accessTopic(
            queueManager.accessQueue("GOLF", CMQC.MQOO_INPUT_SHARED | CMQC.MQOO_OUTPUT),
            "Games/Golf",
            "",
            CMQC.MQSO_CREATE | CMQC.MQSO_PUBLICATIONS_ON_REQUEST);
    int sent;
    try {
      sent = unmanaged.getSubscriptionReference().requestPublicationUpdate(CMQC.MQSR_ACTION_PUBLICATION);
    } catch (MQException error) {
      sent = error.reasonCode;
    }
    System.out.println("unmanaged " + get(unmanaged) + ", " + sent);
    queueManager.disconnect();
    System.out.println("done");
  }
}
