import com.ibm.mq.MQException;
import com.ibm.mq.MQQueueManager;
import com.ibm.mq.constants.CMQC;
import java.util.Hashtable;

/** Tries to connect, and prints the reason. Arguments, for each try: port, channel, queue manager, user, password. */
public class Connect {
  public static void main(String[] arguments) {
    for (int i = 0; i + 4 < arguments.length; i += 5) {
      Hashtable<String, Object> properties = new Hashtable<>();
      properties.put(CMQC.HOST_NAME_PROPERTY, "127.0.0.1");
      properties.put(CMQC.PORT_PROPERTY, Integer.parseInt(arguments[i]));
      properties.put(CMQC.CHANNEL_PROPERTY, arguments[i + 1]);
      properties.put(CMQC.TRANSPORT_PROPERTY, CMQC.TRANSPORT_MQSERIES_CLIENT);
      if (!arguments[i + 3].isEmpty()) {
        properties.put(CMQC.USER_ID_PROPERTY, arguments[i + 3]);
        properties.put(CMQC.PASSWORD_PROPERTY, arguments[i + 4]);
      }
      try {
        new MQQueueManager(arguments[i + 2], properties).disconnect();
        System.out.println(0);
      } catch (MQException e) {
        System.out.println(e.reasonCode);
      }
    }
  }
}
